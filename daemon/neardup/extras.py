"""The optional dependencies of the package: libraries that only some commands or settings need, installed as extras."""

from collections.abc import Iterator
from contextlib import contextmanager

from neardup.errors import Misuse


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Raise Misuse, which says how to install the extra, if a library that is imported inside is not installed."""
    try:
        yield
    except ImportError as error:
        raise Misuse(f"{what} needs {error.name or extra}: {how_to_install(extra)}") from error


def how_to_install(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'neardup[{extra}]'"
