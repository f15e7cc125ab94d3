"""The licences of neardup and of the installed packages that it depends on, from their metadata."""

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
CLASSIFIER = "License :: "


def licences() -> Iterator[tuple[str, str, str]]:
    """(name, version, licence) of neardup, then of each installed package that it needs, directly or not, by name.

    Its own extras count, those of other packages do not.
    """
    installed: dict[str, Distribution] = {}
    missing = ["neardup"]
    while missing:
        name = missing.pop()
        try:
            found = distribution(name)
        except PackageNotFoundError:  # needed elsewhere, or by an extra that is not installed
            continue
        installed[_normal(name)] = found
        required = [one for one in found.requires or () if name == "neardup" or "extra ==" not in one]
        missing += {needed for needed in map(_name_of, required) if _normal(needed) not in installed}
    own = installed.pop("neardup")
    for one in (own, *(installed[name] for name in sorted(installed))):
        yield one.metadata["Name"], one.version, _licence(one)


def _name_of(requirement: str) -> str:
    name = NAME.match(requirement)
    assert name, requirement
    return name[0]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _licence(package: Distribution) -> str:
    """The SPDX expression of a package, or else what it says in words, its classifiers, or the title of its licence."""
    words = [line for line in _all(package, "License") if line.strip()]
    short = [one for one in words if "\n" not in one.strip()]  # some packages put the whole text there
    classifiers = [one.rpartition(" :: ")[2] for one in _all(package, "Classifier") if one.startswith(CLASSIFIER)]
    stated = _all(package, "License-Expression") or short or classifiers or _titles(package)
    return ", ".join(stated) or "not stated"


def _titles(package: Distribution) -> list[str]:
    """The first line of each licence that the package comes with."""
    texts = (package.read_text(f"licenses/{name}") or "" for name in _all(package, "License-File"))
    return [text.strip().partition("\n")[0].strip() for text in texts if text.strip()]


def _all(package: Distribution, field: str) -> list[str]:
    return package.metadata.get_all(field) or []
