"""A page that harms the reader process that parses it."""

from collections.abc import Callable
from pathlib import Path

from tests.support.command import Neardup, embedded
from tests.support.paths import SAMPLES

KILLER = 4104000
# Python runs this at the start of a process that has it on its path; the poisoned page kills the process parsing it.
SITECUSTOMIZE = """
import os, signal, sys
if any("neardup.pages.reader_process" in word for word in sys.orig_argv):
    from neardup.pages import reader_process
    parse = reader_process.extract_story
    def story_of(page, extraction, *, parsed=True):
        if b"POISON" in page.body:
            {effect}
        return parse(page, extraction, parsed=parsed)
    reader_process.extract_story = story_of
"""
DIES = "os.kill(os.getpid(), signal.SIGKILL)"
RAISES = "raise RecursionError('too deep')"
SPINS = "while True: pass"


def poisoned_samples(make_neardup: Callable[[str], Neardup], tmp_path: Path, effect: str) -> Neardup:
    """The samples as files; one page has the given effect on the process that parses it."""
    pages = tmp_path / "pages"
    for path in (SAMPLES / "stories").rglob("*.html"):
        copy = pages / path.relative_to(SAMPLES / "stories")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    page = pages / "TAMIL" / f"{KILLER}.html"
    page.write_bytes(page.read_bytes() + b"<!-- POISON -->")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SITECUSTOMIZE.format(effect=effect))
    neardup = make_neardup(embedded(stories=pages))
    neardup.env["PYTHONPATH"] = str(tmp_path / "site")
    return neardup


def use_normal_program(neardup: Neardup) -> None:
    """Run neardup without the poisoned parser from now on."""
    del neardup.env["PYTHONPATH"]
