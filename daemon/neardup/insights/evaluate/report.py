"""Writes the figures as one self-contained HTML page."""

from pathlib import Path

from neardup.insights.charts.page import can_plot, write_page
from neardup.insights.evaluate import copies, truth
from neardup.insights.evaluate.tables import Facts

TITLE = "neardup evaluation"


def write_copies(path: Path, facts: Facts) -> None:
    """Write the page of an evaluation with copies.  A page that cannot be written raises Fatal and leaves no part."""
    drawn = dict[str, str]()
    if can_plot():
        from neardup.insights.evaluate.plots import plots  # noqa: PLC0415 - it imports matplotlib

        drawn = plots(facts)
    stories = ", ".join(f"{language} {n['originals']:,} ({n['copies']:,})" for language, n in facts["stories"].items())
    about = (
        f"Stories, and in parentheses the copies made of them: {stories}. Each story was copied by each edit that can "
        "be applied to it, and the pipeline ran over all. Intervals are Wilson's, of 95 %; shares are rounded down."
    )
    write_page(path, TITLE, about, plots=drawn, tables=copies.copies_tables(facts), details=copies.details(facts))


def write_truth(path: Path, facts: Facts) -> None:
    """Write the page that compares the flags on record with labelled pairs.  Raises Fatal."""
    about = (
        f"{facts['flagged']:,} flags on record against {facts['labelled']:,} labelled pairs, of which "
        f"{facts['wanted']:,} must be found. Intervals are Wilson's, of 95 %; shares are rounded down."
    )
    write_page(path, TITLE, about, plots={}, tables=truth.label_tables(facts))
