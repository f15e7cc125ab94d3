"""The base class of the sections of the configuration: typed keys, checked when a section is made.

pydantic would do this too, but its import and the schemas of the sections take as long as all the rest of a short
command.  What a table of TOML can hold needs little of it.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NewType,
    Self,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

REQUIRED: Any = object()  # stands for the default of a key that must be given
TRUTH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}

Place = tuple[str | int, ...]  # the keys and the indexes that lead to a value


class Wrong(ValueError):
    """The values that cannot be accepted: the place and the reason of each."""

    def __init__(self, faults: Sequence[tuple[Place, str]]) -> None:
        super().__init__("; ".join(map(in_words, faults)))
        self.faults = faults


def in_words(fault: tuple[Place, str]) -> str:
    """The place of a wrong value, with dots, and the reason."""
    place, reason = fault
    return f"{'.'.join(map(str, place))}: {reason}" if place else reason


class Secret:
    """A text that is not shown where a section is printed."""

    def __init__(self, value: str) -> None:
        self._value = value

    def revealed(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('**********')" if self._value else "Secret('')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)


@dataclass(frozen=True)
class Before:
    """In an Annotated type: what turns a given value into one of the type.  It raises ValueError."""

    convert: Callable[[Any], Any]


@dataclass(frozen=True)
class After:
    """In an Annotated type: what checks a value of the type, and returns it.  It raises ValueError."""

    check: Callable[[Any], Any]


@dataclass(frozen=True)
class Setting:
    """One key of a section: its default, or what makes it; its bounds; and its row in the documentation."""

    description: str
    default: Any = REQUIRED
    default_factory: Callable[[], Any] | None = None
    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    kind: Any = None  # the type

    @property
    def is_required(self) -> bool:
        """Whether the key must be given."""
        return self.default is REQUIRED and self.default_factory is None

    def value_by_default(self) -> Any:
        """The value of a key that is not given."""
        return self.default if self.default_factory is None else self.default_factory()

    def of_kind(self, kind: Any) -> "Setting":
        """The same key with its type."""
        bounds = self.gt, self.ge, self.lt, self.le
        return Setting(self.description, self.default, self.default_factory, *bounds, kind)

    def accepted(self, given: Any, place: Place) -> Any:
        """The value that is meant by what is given.  Raises Wrong."""
        value = read(self.kind, given, place)
        if isinstance(value, int | float):
            for bound, holds, words in (
                (self.gt, self.gt is None or value > self.gt, "greater than"),
                (self.ge, self.ge is None or value >= self.ge, "greater than or equal to"),
                (self.lt, self.lt is None or value < self.lt, "less than"),
                (self.le, self.le is None or value <= self.le, "less than or equal to"),
            ):
                if not holds:
                    raise Wrong([(place, f"Input should be {words} {bound}")])
        return value


def setting(
    *,
    description: str = "",
    default: Any = REQUIRED,
    default_factory: Callable[[], Any] | None = None,
    gt: float | None = None,
    ge: float | None = None,
    lt: float | None = None,
    le: float | None = None,
) -> Any:
    """Declare one key of a section; see `Setting`."""
    return Setting(description, default, default_factory, gt, ge, lt, le)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting,))
class Section:
    """One table of config.toml.  Each key is a `setting`, whose description is its row in the documentation."""

    settings: ClassVar[Mapping[str, Setting]] = {}

    def __init_subclass__(cls) -> None:
        own: dict[str, Setting] = {}
        for name, kind in inspect.get_annotations(cls).items():
            if not str(kind).startswith("typing.ClassVar"):
                given = cls.__dict__.get(name, REQUIRED)
                declared = given if isinstance(given, Setting) else Setting("", given)
                own[name] = declared.of_kind(kind)
                if name in cls.__dict__:
                    delattr(cls, name)
        cls.settings = {**cls.settings, **own}

    def __init__(self, **given: Any) -> None:
        """Raises Wrong, with every value that cannot be accepted."""
        faults: list[tuple[Place, str]] = []
        given = self.prepared(given)
        for name, declared in self.settings.items():
            if name in given:
                try:
                    self.__dict__[name] = declared.accepted(given[name], (name,))
                except Wrong as wrong:
                    faults += wrong.faults
            elif declared.is_required:
                faults.append(((name,), "required"))
            else:
                self.__dict__[name] = declared.value_by_default()
        faults += [((name,), "unknown key") for name in given if name not in self.settings]
        if faults:
            raise Wrong(faults)
        try:
            self.check()
        except Wrong:
            raise
        except ValueError as error:
            raise Wrong([((), str(error))]) from None

    @classmethod
    def prepared(cls, table: dict[str, Any]) -> dict[str, Any]:
        """What is given for the keys, of a table as it was written."""
        return table

    def check(self) -> None:
        """Check what several keys must fulfil together.  Raises ValueError."""

    def replaced(self, **values: Any) -> Self:
        """The same section with other values, which are not checked."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__ | values)
        return other

    def plain(self) -> dict[str, Any]:
        """The values as JSON can hold them."""
        return {name: _plain(self.__dict__[name]) for name in self.settings}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(self.__dict__[name] == other.__dict__[name] for name in self.settings)

    def __hash__(self) -> int:
        return hash((type(self), *(self.__dict__[name] for name in self.settings)))

    def __repr__(self) -> str:
        values = (f"{name}={self.__dict__[name]!r}" for name in self.settings)
        return f"{type(self).__name__}({', '.join(values)})"


def parts(kind: Any) -> Iterator[Any]:
    """A type and, of a union or of an annotated type, the types in it."""
    origin = get_origin(kind)
    inner = get_args(kind)[:1] if origin is Annotated else get_args(kind) if origin in (Union, UnionType) else ()
    yield kind
    for part in inner:
        yield from parts(part)


def section_in(kind: Any) -> "type[Section] | None":
    """The section that a value of a type is, or may be."""
    return next((part for part in parts(kind) if isinstance(part, type) and issubclass(part, Section)), None)


def table_in(kind: Any) -> Any:
    """The type of the values, if a type is that of tables whose names an operator chooses."""
    return next((get_args(part)[1] for part in parts(kind) if get_origin(part) is dict), None)


def read(kind: Any, given: Any, place: Place = ()) -> Any:  # noqa: C901, PLR0911 - a table of types
    """The value of a type that is meant by a value of TOML, or by the text of a variable.  Raises Wrong."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _read_annotated(arguments, given, place)
    if origin in (Union, UnionType):
        return _read_union(arguments, given, place)
    if origin is Literal:
        if given not in arguments:
            *others, last = map(repr, arguments)
            raise Wrong(
                [(place, f"Input should be {', '.join(others)} or {last}" if others else f"Input should be {last}")]
            )
        return given
    if origin is tuple:
        return _read_list(arguments[0], given, place)
    if origin is dict:
        return _read_table(arguments, given, place)
    if isinstance(kind, NewType):
        return read(kind.__supertype__, given, place)
    if issubclass(kind, Section):
        return _read_section(kind, given, place)
    if kind in READERS:
        wanted, convert = READERS[kind]
        try:
            return convert(given)
        except (ValueError, TypeError, OverflowError):
            raise Wrong([(place, f"Input should be {wanted}")]) from None
    if isinstance(given, kind):
        return given
    raise Wrong([(place, f"Input should be a {kind.__name__}")])


def _read_annotated(arguments: tuple[Any, ...], given: Any, place: Place) -> Any:
    kind, *steps = arguments
    try:
        for step in steps:
            if isinstance(step, Before):
                given = step.convert(given)
        value = read(kind, given, place)
        for step in steps:
            if isinstance(step, After):
                value = step.check(value)
    except Wrong:
        raise
    except ValueError as error:
        raise Wrong([(place, str(error))]) from None
    return value


def _read_union(kinds: tuple[Any, ...], given: Any, place: Place) -> Any:
    """As the first of the types that the value has, or else that accepts it."""
    if given is None and NoneType in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    if any(isinstance(kind, type) and isinstance(given, kind) for kind in kinds):
        return given
    for kind in kinds[:-1]:
        try:
            return read(kind, given, place)
        except Wrong:
            continue
    return read(kinds[-1], given, place)


def _read_list(kind: Any, given: Any, place: Place) -> tuple[Any, ...]:
    if not isinstance(given, list | tuple):
        raise Wrong([(place, "Input should be a list")])
    return tuple(_each((read, kind, item, (*place, number)) for number, item in enumerate(given)))


def _read_table(kinds: tuple[Any, Any], given: Any, place: Place) -> dict[Any, Any]:
    if not isinstance(given, dict):
        raise Wrong([(place, "Input should be a table")])
    names = _each((read, kinds[0], name, (*place, name, "[key]")) for name in given)
    values = _each((read, kinds[1], value, (*place, name)) for name, value in given.items())
    return dict(zip(names, values, strict=True))


def _each(calls: Iterator[tuple[Callable[..., Any], Any, Any, Place]]) -> list[Any]:
    """The results of the calls.  Raises Wrong, with the faults of all of them."""
    results, faults = list[Any](), list[tuple[Place, str]]()
    for call, *arguments in calls:
        try:
            results.append(call(*arguments))
        except Wrong as wrong:
            faults += wrong.faults
    if faults:
        raise Wrong(faults)
    return results


def _read_section(kind: type[Section], given: Any, place: Place) -> Section:
    if isinstance(given, kind):
        return given
    if not isinstance(given, dict):
        raise Wrong([(place, "Input should be a table")])
    try:
        return kind(**given)
    except Wrong as wrong:
        raise Wrong([((*place, *inner), reason) for inner, reason in wrong.faults]) from None


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    return given


def _truth(given: Any) -> bool:
    return given if isinstance(given, bool) else TRUTH[given.lower()] if isinstance(given, str) else bool(int(given))


def _whole(given: Any) -> int:
    if isinstance(given, bool) or (isinstance(given, float) and not given.is_integer()):
        raise TypeError
    return int(given)


def _number(given: Any) -> float:
    if isinstance(given, bool):
        raise TypeError
    return float(given)


def _path(given: Any) -> Path:
    if not isinstance(given, str | Path):
        raise TypeError
    return Path(given)


def _secret(given: Any) -> Secret:
    return given if isinstance(given, Secret) else Secret(_text(given))


# Type -> its name in a message, and what makes a value of it: ValueError and TypeError refuse
READERS: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    str: ("a valid string", _text),
    bool: ("true or false", _truth),
    int: ("a valid integer", _whole),
    float: ("a valid number", _number),
    Path: ("a path", _path),
    Secret: ("a valid string", _secret),
}


def _plain(value: Any) -> Any:
    match value:
        case Section():
            return value.plain()
        case Mapping():
            return {key: _plain(inner) for key, inner in value.items()}
        case tuple():
            return [_plain(item) for item in value]
        case str() | int() | float() | None:
            return value
        case timedelta():
            return value.total_seconds()
        case _:
            return str(value)


def matching(pattern: str, meaning: str) -> After:
    """A check that a whole value matches a pattern; the error does not show the value, which may have a password."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"must be {meaning}")
        return value

    return After(check)


def refuse_missing(section: Section, kind: str, needed: Iterable[str]) -> None:
    """Raise ValueError if keys that this `kind` of a section needs have no value."""
    if missing := [name for name in needed if not getattr(section, name)]:
        raise ValueError(f'kind = "{kind}" needs {" and ".join(missing)}')
