"""Tables and plots as one HTML page without external resources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from neardup import __version__
from neardup.errors import Fatal, how_to_install
from neardup.telemetry.log import log

TEMPLATE = "page.html.j2"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text cells; `note` explains it."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def can_plot() -> bool:
    """Whether matplotlib is installed; if not, a log line says how to install it."""
    try:
        import matplotlib as mpl  # noqa: F401, PLC0415 - takes half a second, so only for plots
    except ImportError:
        log.warning("the page has no plots, because matplotlib is not installed", remedy=how_to_install("report"))
        return False
    return True


def write_page(
    path: Path,
    title: str,
    about: str,
    *,
    plots: Mapping[str, str],
    tables: Sequence[Table],
    details: Sequence[Table] = (),
) -> None:
    """Write a page of plots (SVG by title) and tables, replacing an older page atomically.

    `about` is the paragraph below the title; `details` are tables that are collapsed at first.
    Raises Fatal if the page cannot be written.
    """
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
