"""The table of size projections: what projects the size of each kind of index."""

from collections.abc import Mapping

from neardup.index.redis.size import PROJECTIONS
from neardup.index.size import SizeProjection
from neardup.index.sqlite_size import project_size

# By layout for Redis; SQLite has one layout.
SIZE_PROJECTIONS: Mapping[str, SizeProjection] = {**PROJECTIONS, "sqlite": project_size}
