"""Writes a story that copies from others: its pages, and its flags with the copied spans, as the pipeline does."""

import sqlite3
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from msgspec import Struct
from neardup.core.columns import Outcomes
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.fingerprint.version import version
from neardup.core.verify.tiers import PARTIAL
from neardup.ledger import candidates, runs, stories, verification
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import Assessment, Fingerprinted, Kind, Language, Signals, Story

PARAGRAPH = 60  # words
DAY = 86_400_000


class CopiedFrom(Struct, frozen=True):
    """A source: its words, and what the story copied: (first word in the story, first word in the source, words)."""

    words: Sequence[str]
    copied: Sequence[tuple[int, int, int]]
    author: str | None = "source"
    title: str | None = None
    kind: Kind = PARTIAL


def write_copying_story(  # noqa: PLR0917 - a story and where to write it
    folder: Path,
    db: sqlite3.Connection,
    story_id: int,
    language: Language,
    words: Sequence[str],
    sources: Sequence[CopiedFrom],
    *,
    author: str | None = "copier",
    title: str | None = None,
) -> list[int]:
    """Write a story with its sources, which were published before it; returns their ids, below that of the story."""
    runs.put(db, "fingerprint_version", version())
    ids = [story_id - len(sources) + n for n in range(len(sources))]
    texts = [
        (source_id, source.words, source.author, source.title) for source_id, source in zip(ids, sources, strict=True)
    ]
    outcomes = [
        _write(folder, Story(n, language, f"{n}.html", by, name, (k + 1) * DAY, DAY), text)
        for k, (n, text, by, name) in enumerate([*texts, (story_id, words, author, title)])
    ]
    pairs = [(source_id, story_id) for source_id in ids]
    matched = candidates.Matches(story_id, ids, len(ids))
    stories.commit(db, stories.Batch(Outcomes.of(outcomes), [matched], 1, {}, None))
    pending = {(pair.a.id, pair.b.id): pair for pair in candidates.list_pending(db, BEFORE_ALL, 10_000)}
    assessed = [(pending[pair], _assessment(source, len(words))) for pair, source in zip(pairs, sources, strict=True)]
    verification.record(db, assessed, "v")
    return ids


def _write(folder: Path, story: Story, words: Sequence[str]) -> Fingerprinted:
    lines = [" ".join(words[at : at + PARAGRAPH]) for at in range(0, len(words), PARAGRAPH)]
    body = "".join(f"<p>{escape(line)}</p>" for line in lines)
    page = f"<html><body><article><div class=story>{body}</div></article></body></html>"
    (folder / f"{story.path}").write_text(page, encoding="utf-8")
    made = fingerprint_text("\n".join(lines))
    assert made is not None
    return Fingerprinted(story, made, None)


def _assessment(source: CopiedFrom, words: int) -> Assessment:
    rows = np.array(source.copied, np.int32).reshape(-1, 3)
    copied = int(rows[:, 2].sum())
    signals = Signals(
        60,
        jaccard=0.1,
        containment_a=min(copied / len(source.words), 1.0),
        containment_b=min(copied / words, 1.0),
        longest_run_words=int(rows[:, 2].max(initial=0)),
        extra={"copied_words": copied},
    )
    in_story, in_source = (np.stack((rows[:, side], rows[:, side] + rows[:, 2]), axis=1) for side in (0, 1))
    return Assessment(source.kind, signals, in_source, in_story)
