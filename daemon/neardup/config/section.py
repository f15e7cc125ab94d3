"""The base class of the sections of the configuration, how one is read from TOML, and values of many sections.

msgspec checks and converts the value of each key.  Keys are read one by one, because it stops at the first fault and an
operator wants to know all of them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

from msgspec import DecodeError, Meta, Struct, ValidationError, convert, json
from msgspec.structs import fields

Place = tuple[str | int, ...]  # the keys and the indexes that lead to a value
Fault = tuple[Place, str]  # the place of a wrong value, and the reason


class Wrong(ValueError):
    """The values that cannot be accepted."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(map(describe_fault, faults)))
        self.faults = faults


def list_faults(error: ValueError) -> Sequence[Fault]:
    """What an error of `read` says: the faults of Wrong, or else one of the whole value."""
    return error.faults if isinstance(error, Wrong) else [((), str(error))]


def describe_fault(fault: Fault) -> str:
    """The place of a wrong value, with dots, and the reason."""
    place, reason = fault
    return f"{'.'.join(map(str, place))}: {reason}" if place else reason


class Secret:
    """A text that is not shown where a section is printed."""

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('**********')" if self._value else "Secret('')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)


class FromText(Struct, frozen=True):
    """In an Annotated type: what makes a value of the type from text.  It raises ValueError."""

    make: Callable[[str], Any]


def match_pattern(pattern: str, meaning: str) -> Meta:
    """In an Annotated text: the pattern of the whole text, and what a message says that the text must be."""
    return Meta(pattern=rf"\A(?:{pattern})\Z", title=meaning)


def match_url(pattern: str, meaning: str) -> FromText:
    """In an Annotated text: as `match_pattern`, of a URL, whose host and port can be read."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"must be {meaning}")
        try:
            _ = urlsplit(value).port
        except ValueError:  # whose message may show a part of a password
            raise ValueError("its host or port cannot be read (percent-encode / # @ : in a password)") from None
        return value

    return FromText(check)


class Section(Struct, frozen=True, dict=True):
    """One table of config.toml.  The description of each key is its row in the documentation.

    Calling a section checks only what its keys must fulfil together: `__post_init__`, which raises ValueError.
    """

    @classmethod
    def prepare(cls, table: dict[str, Any]) -> dict[str, Any]:
        """A table as it was written -> by the keys of this section; for a section that can be written in other ways."""
        return table


def list_parts(kind: Any) -> Iterator[Any]:
    """A type, and the types and annotations in it."""
    yield kind
    for part in get_args(kind):
        yield from list_parts(part)


def read(kind: Any, given: Any) -> Any:
    """The value of a type that is meant by a value of TOML, or by the text of an environment variable.

    Raises ValueError; `list_faults` lists all faults.  No reason shows a value that may have a password.
    """
    for part in list_parts(kind):
        if isinstance(part, type) and issubclass(part, Section):
            return given if isinstance(given, part) else _read_section(part, _decode_json(given, dict, "a table"))
        if get_origin(part) is dict:
            names, values = get_args(part)
            table = _decode_json(given, dict, "a table")
            _read_each((name, names, name) for name in table)
            return _read_each((name, values, value) for name, value in table.items())
        if get_origin(part) is tuple:
            given = _decode_json(given, list, "a list")
        if isinstance(part, FromText):
            return part.make(_convert(str, given))
    return _convert(kind, given)


def _decode_json(given: Any, shape: type, name: str) -> Any:
    """A list or a table, which the text of an environment variable holds as JSON."""
    value, hint = given, ""
    if isinstance(given, str):
        hint = ", which a variable holds as JSON"
        with suppress(DecodeError):
            value = json.decode(given)
    if not isinstance(value, shape):
        raise ValueError(f"must be {name}{hint}")
    return value


def _read_section(kind: type[Section], table: dict[str, Any]) -> Section:
    table = kind.prepare(table)
    known = {field.name: field for field in fields(kind)}
    faults: list[Fault] = [((name,), "unknown key") for name in table if name not in known]
    faults += [((name,), "required") for name, field in known.items() if field.required and name not in table]
    return kind(**_read_each(((name, known[name].type, table[name]) for name in known if name in table), faults))


def _read_each(values: Iterable[tuple[str, Any, Any]], faults: Iterable[Fault] = ()) -> dict[str, Any]:
    """What is meant by each value, by name.  Raises Wrong, with these faults and those of all values."""
    meant, faults = dict[str, Any](), list(faults)
    for name, kind, given in values:
        try:
            meant[name] = read(kind, given)
        except ValueError as error:
            faults += [((name, *place), reason) for place, reason in list_faults(error)]
    if faults:
        raise Wrong(faults)
    return meant


def _convert(kind: Any, given: Any) -> Any:
    try:
        return convert(given, kind, strict=False, dec_hook=lambda custom, text: custom(convert(text, str)))
    except ValidationError as error:
        raise Wrong([_make_fault(kind, str(error))]) from None


def _make_fault(kind: Any, message: str) -> Fault:
    """The place and the reason that a message of msgspec gives; it names the choices, or what a text must be."""
    reason, _, place = message.replace(" | null", "").partition(" - at `$")
    if reason.startswith("Invalid enum value"):
        choices = next(get_args(part) for part in list_parts(kind) if get_origin(part) is Literal)
        reason = f"must be {' or '.join(map(repr, choices))}"
    elif "matching regex" in reason:
        reason = f"must be {next(part.title for part in list_parts(kind) if isinstance(part, Meta) and part.pattern)}"
    return tuple(re.findall(r"\d+", place)), reason


def refuse_missing(section: Section, kind: str, needed: Iterable[str]) -> None:
    """Raise ValueError if keys that this `kind` of a section needs have no value."""
    if missing := [name for name in needed if not getattr(section, name)]:
        raise ValueError(f'kind = "{kind}" needs {" and ".join(missing)}')


def check_address(value: str) -> str:
    """Return HOST:PORT unchanged.  Raises ValueError for anything else."""
    host, _, port = value.rpartition(":")
    try:
        encoded = host.encode("idna")  # as it is looked up
    except UnicodeError:
        encoded = b""
    if not encoded or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"not HOST:PORT: {value!r}")
    return value


Address = Annotated[str, FromText(check_address)]
HttpUrl = Annotated[str, match_url(r"(https?://[^/\s]\S*)?", "an http:// or https:// URL")]
