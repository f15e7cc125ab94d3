"""Tables and plots as one page that needs nothing but itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from neardup import __version__
from neardup.errors import Fatal

TEMPLATE = "page.html.j2"


@dataclass(frozen=True, slots=True)
class Table:
    """A title, what it means, the columns, and the cells row by row."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_page(
    path: Path,
    title: str,
    about: str,
    *,
    plots: Mapping[str, str],
    tables: Sequence[Table],
    details: Sequence[Table] = (),
) -> None:
    """Write a page, whole or not at all: SVG by title, then tables, then those that are folded.  Raises Fatal."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    page = environment.get_template(TEMPLATE).render(
        version=__version__, title=title, about=about, tables=tables, details=details, plots=plots
    )
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(page, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise Fatal(f"cannot write the page {path}: {error.strerror}") from error
