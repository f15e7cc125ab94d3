"""What the tables and plots of an evaluation share."""

from typing import Any

ALL = "all"  # the row of all languages together

Facts = dict[str, Any]
