"""The figures as one page that needs nothing but itself."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from daemon import __version__
from daemon.errors import Fatal
from daemon.evaluate import copies_tables, truth_tables
from daemon.evaluate.figures import Facts
from daemon.evaluate.tables import Table

TEMPLATE = "page.html.j2"


def write_copies(path: Path, facts: Facts) -> None:
    """Write the page of an evaluation with copies, whole or not at all.  Raises Fatal."""
    from daemon.evaluate.plots import plots  # noqa: PLC0415 - half a second, which no other command pays

    stories = ", ".join(f"{language} {n['originals']:,} ({n['copies']:,})" for language, n in facts["stories"].items())
    about = (
        f"Stories, and copies made of them: {stories}. Each was copied by each edit that found something to work on, "
        "and the real pipeline was run over all. Intervals are Wilson's, of 95 %; shares are rounded down."
    )
    _write(path, about, copies_tables.tables(facts), copies_tables.details(facts), plots(facts))


def write_truth(path: Path, facts: Facts) -> None:
    """Write the page of the flags on record against labelled pairs.  Raises Fatal."""
    about = (
        f"{facts['flagged']:,} flags on record against {facts['labelled']:,} labelled pairs, of which "
        f"{facts['wanted']:,} must be found. Intervals are Wilson's, of 95 %; shares are rounded down."
    )
    _write(path, about, truth_tables.tables(facts), [], {})


def _write(path: Path, about: str, tables: Sequence[Table], details: Sequence[Table], drawn: Mapping[str, str]) -> None:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    page = environment.get_template(TEMPLATE).render(
        version=__version__, about=about, tables=tables, details=details, plots=drawn
    )
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(page, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        raise Fatal(f"cannot write the page {path}: {error.strerror}") from error
