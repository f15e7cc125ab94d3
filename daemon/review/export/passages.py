"""What the pairs of a small export have copied, by their texts as they are now."""

from collections.abc import Mapping
from typing import Any

import structlog

from daemon.compare import compare
from daemon.config import Config
from daemon.errors import Fatal, Transient

MOST_PAIRS = 200  # more would keep the store busy for what nobody reads in one sitting

log = structlog.get_logger()


async def passages_of(config: Config, pairs: Mapping[int, tuple[int, int]]) -> dict[int, dict[str, Any]]:
    """Flag -> what `compare` gives of its pair A and B; no entry where a text is not to be had."""
    found: dict[int, dict[str, Any]] = {}
    for flag_id, (a, b) in pairs.items():
        try:
            found[flag_id] = await compare(config, str(a), str(b))
        except Fatal as error:
            log.info("an export without the passages of a pair", flag=flag_id, why=str(error))
        except Transient as error:
            log.warning("an export without passages", why=str(error))
            break
    return found
