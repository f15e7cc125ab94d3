"""Pages that attack their reader process, the outcomes allowed for each, and a meter of memory and CPU time."""

import gzip
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import webencodings
from msgspec import Struct, field
from neardup.config import Content
from neardup.core.text.html import MOST_TAGS
from neardup.pages.watchdog import read_cpu_seconds
from neardup.records import Language, Skip
from webencodings.labels import LABELS as SPELLINGS

from tests.support.command import Neardup, embedded
from tests.support.languages import TEXTS
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


READ = "fingerprinted"
PROSE = " ".join(TEXTS.values())
MOST = Content(url="file:").max_bytes
OVER, SHORT, EMPTY, NOT_TEXT = Skip.OVER_BUDGET, Skip.TOO_SHORT, Skip.EMPTY, Skip.NOT_TEXT

SAMPLED_SECONDS = 0.05
# The memory of a process without a page, that which a page may take, and growth between two samples on a slow machine.
PEAK_BYTES = 1_000_000_000


def _full(unit: str | bytes, size: int = MOST - 10_000) -> bytes:
    """Repeat `unit` up to `size` bytes."""
    data = unit if isinstance(unit, bytes) else unit.encode()
    return data * (size // len(data))


def _mixed_marks() -> bytes:
    return "".join(random.Random(1).choices("\u0301\u0316\u0327\u031b\u0323", k=MOST // 8)).encode()


class Hostile(Struct, frozen=True):
    """A page and its allowed outcomes, which depend on the machine: READ or the reasons to skip it."""

    page: Callable[[], bytes]
    outcomes: set[str]


CASES = {
    "nested blocks": Hostile(lambda: b"<div>" * (MOST_TAGS - 9), {EMPTY}),
    "too many attributes of one tag": Hostile(
        lambda: b"<p %b>x" % b" ".join(b"a%d=1" % n for n in range(MOST // 11)), {SHORT}
    ),
    "unclosed formatting": Hostile(
        lambda: b"<p>" + b"".join(b"<b %d>" % n for n in range(1777)) + b"<p>x" * 16_000, {READ}
    ),
    "too many nested blocks": Hostile(lambda: _full("<div>"), {EMPTY}),
    "tags alone": Hostile(lambda: _full("<p>"), {EMPTY}),
    "tags alone in UTF-16": Hostile(lambda: ("<b>" * (MOST // 6 - 10)).encode("utf-16"), {EMPTY}),
    "as many tags as allowed": Hostile(lambda: b"<p>x " * (MOST_TAGS - 9), {READ}),
    "misnested formatting": Hostile(lambda: b"<a><p>x " * (MOST_TAGS // 2 - 9), {READ}),
    "60 MB": Hostile(lambda: b"<p>" + b"word " * 12_000_000, {READ}),
    "ten million words of one letter": Hostile(lambda: b"a " * 10_000_000, {READ}),
    "words of one letter": Hostile(lambda: _full("a "), {READ}),
    "one word": Hostile(lambda: _full("क"), {READ}),
    "combining marks alone": Hostile(lambda: _full("\u0301"), {SHORT, OVER}),
    "combining marks out of order": Hostile(_mixed_marks, {SHORT, OVER}),
    "stacks of combining marks": Hostile(lambda: _full("a" + "\u0301\u0316" * 200 + " ", MOST // 4), {READ, OVER}),
    "zero-width joiners alone": Hostile(lambda: _full("\u200d"), {EMPTY}),
    "NULs alone": Hostile(lambda: bytes(MOST), {NOT_TEXT}),
    "NULs between words": Hostile(lambda: PROSE.replace(" ", " \0").encode(), {READ, NOT_TEXT}),
    "lone surrogates": Hostile(lambda: _full(b"\xed\xa0\x80 a \xed\xbf\xbf"), {READ, NOT_TEXT}),
    "lone surrogates among words": Hostile(
        lambda: PROSE.replace(" ", " \ud800").encode("utf-8", "surrogatepass"), {READ, NOT_TEXT}
    ),
    "lone surrogates as character references": Hostile(
        lambda: PROSE.replace(" ", " &#xD800;&#xDFFF;").encode(), {READ}
    ),
    "lone surrogates in UTF-16": Hostile(
        lambda: PROSE.replace(" ", " \udfff").encode("utf-16", "surrogatepass"), {READ, NOT_TEXT}
    ),
    "a huge attribute": Hostile(lambda: b"<p title='%b'>%b" % (_full("x", MOST // 2), PROSE.encode()), {READ}),
    "a huge comment": Hostile(lambda: b"<!--%b-->%b" % (_full("a b ", MOST // 2), PROSE.encode()), {READ}),
    "a huge tag name": Hostile(lambda: b"<%b>%b" % (_full("x", MOST // 2), PROSE.encode()), {READ}),
    "a comment that never ends": Hostile(lambda: b"<p>x<!--" + _full("a b "), {SHORT}),
    "angle brackets alone": Hostile(lambda: _full("<"), {EMPTY, OVER}),
    "ampersands alone": Hostile(lambda: _full("&"), {EMPTY}),
    "noise": Hostile(lambda: random.Random(1).randbytes(MOST), {NOT_TEXT}),
}

ONE = gzip.compress(b"")
GZIPPED = {  # as Content-Encoding: gzip
    "a gzip bomb": Hostile(lambda: gzip.compress(bytes(200_000_000), 1), {NOT_TEXT}),
    "a gzip bomb in a gzip bomb": Hostile(lambda: gzip.compress(gzip.compress(bytes(200_000_000), 1)), {NOT_TEXT}),
    "empty gzip members": Hostile(lambda: ONE * (MOST // len(ONE)), {EMPTY}),
    "a gzip bomb of members": Hostile(lambda: gzip.compress(b"word " * 100) * 11_000, {READ}),
    "half a gzip file": Hostile(lambda: gzip.compress(random.Random(1).randbytes(90_000))[:50_000], {NOT_TEXT}),
    "not a gzip file": Hostile(f"<p>{PROSE}".encode, {READ}),
    "a gzip file with trailing bytes": Hostile(lambda: gzip.compress(f"<p>{PROSE}".encode()) + b"more", {READ}),
}

LABELS = sorted({encoding.name for label in SPELLINGS if (encoding := webencodings.lookup(label))})
SELF_EVIDENT = ("utf-8", "utf-8-sig", "utf-16")  # recognized by their bytes, whatever is declared
ENCODED = (*SELF_EVIDENT, "utf-16-le", "utf-16-be", "utf-32", "utf-7", "cp1252", "iso-2022-jp", "gb18030", "koi8-r")


def mislabelled(language: Language, declared: str, encoded: str) -> bytes:
    """A story that declares one encoding and uses another; letters it lacks become character references."""
    page = f"<meta charset={declared}><p>{TEXTS[language]} {TEXTS[language]}</p>"
    return page.encode(encoded, "xmlcharrefreplace")


class Peaks(Struct):
    """The peak resident bytes of any descendant of a process but the `others`, and the CPU seconds of each."""

    others: frozenset[int]
    memory: int = 0
    seconds: dict[int, float] = field(default_factory=dict)

    def sample(self, parent: int) -> None:
        for pid in {*self.seconds, *_below(parent)} - self.others:  # orphans are no longer below the parent
            with suppress(OSError, StopIteration):  # the process has ended
                if _command(pid) == _command(parent):  # forked only now: the memory is still the parent's
                    continue
                status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
                high = next(line for line in status.splitlines() if line.startswith("VmHWM"))
                self.memory = max(self.memory, int(high.split()[1]) * 1024)
                self.seconds[pid] = read_cpu_seconds(pid)


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _below(parent: int) -> Iterator[int]:
    """All descendants of a process."""
    with suppress(OSError):
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            for child in map(int, children.read_text(encoding="ascii").split()):
                yield child
                yield from _below(child)


@contextmanager
def watching(parent: int) -> Iterator[Peaks]:
    """Sample the descendants that a process gets while the context is open: not the servers of other tests."""
    peaks, ended = Peaks(frozenset(_below(parent))), threading.Event()

    def watch() -> None:
        while not ended.wait(SAMPLED_SECONDS):
            peaks.sample(parent)

    thread = threading.Thread(target=watch, name="peaks")
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()
