"""The program, loaded for the processes that are forked from this one: a command loads what it needs when it runs."""

from importlib import import_module
from pkgutil import walk_packages

import neardup

LIBRARIES = ("prometheus_client", "rich.progress", "stamina", "structlog", "structlog.contextvars", "uvloop")
NOT_LOADED = (
    "neardup.__main__",  # runs a command
    "neardup.core.native._neardup",  # is no module of Python
    "neardup.spark",
    *("neardup.s3.objects", "neardup.source.athena"),  # with the libraries of AWS, which take seconds
)


def load_program() -> None:
    """Import every module, with the libraries that these import when they are called."""
    for module in walk_packages(neardup.__path__, "neardup."):
        if not module.name.startswith(NOT_LOADED):
            import_module(module.name)
    for library in LIBRARIES:
        import_module(library)
