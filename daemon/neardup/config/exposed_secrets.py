"""Secrets in a configuration file that every user of the machine can read."""

import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


def _has_password(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.password or "password" in parse_qs(parts.query))


SECRET: dict[tuple[str, str], Callable[[str], bool]] = {
    ("index", "url"): _has_password,
    ("review", "token"): bool,
    ("export", "webhook"): bool,  # anyone who knows its path can post to it
    ("review", "webhook"): bool,  # likewise
    ("meaning", "key"): bool,
}


def exposed(path: Path) -> list[str]:
    """Return the keys that hold a secret in a configuration file which every user of the machine can read."""
    if not path.stat().st_mode & stat.S_IROTH:
        return []
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        f"{section}.{key}"
        for (section, key), is_secret in SECRET.items()
        if is_secret(str(tables.get(section, {}).get(key, "")))
    ]
