"""Secrets in a configuration file that anybody on the box can read."""

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
    ("export", "webhook"): bool,  # who knows its path may post to it
}


def exposed(path: Path) -> list[str]:
    """The keys of a configuration file, one that `config.load` reads, that hold a secret which others can read."""
    if not path.stat().st_mode & stat.S_IROTH:
        return []
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        f"{section}.{key}"
        for (section, key), is_secret in SECRET.items()
        if is_secret(str(tables.get(section, {}).get(key, "")))
    ]
