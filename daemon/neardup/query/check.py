"""What would a text be flagged against?  Looks, and stores nothing."""

import sqlite3
from contextlib import closing
from typing import Any

from neardup.app import App, extraction, open_readers
from neardup.core.candidates.select import nominate
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.text.html import file_text
from neardup.core.verify.scores import judge, shingled
from neardup.errors import Transient
from neardup.ledger import fingerprint_arrays, runs, stories
from neardup.pages.reader_process import story_words
from neardup.pages.text_cache import Texts
from neardup.pipeline.index_sync import ledger_id, refuse
from neardup.records import Banded, Candidate, Finding, Kind, Language, Side
from neardup.retry import retried
from neardup.timestamps import rfc3339

CHECKED = -(2**63)  # no story has this id


async def check(app: App, body: bytes, language: Language) -> list[dict[str, Any]]:
    """A page or a plain text -> the stories it would be flagged against, best first.

    Raises Unreadable where it holds no story, Fatal or Transient for an index that cannot tell.
    """
    words = story_words(file_text(body, extraction(app.config)))
    made = fingerprint(words)
    limits = app.config.detection.of(language)
    probe = Banded(language, made.simhash, made.signature)
    nominated = await retried("look_up", lambda: _nominated(app, probe))
    matches = await app.reader.do(stories.describe, nominated)
    checked = Side(CHECKED, None, made.text_hash, made.simhash, made.signature, made.words, made.shingles)
    pairs = [
        Candidate(language, checked, Side(**{name: row[name] for name in Side.__slots__})) for row in matches.values()
    ]
    with closing(open_readers(app.config)) as readers:
        texts = await Texts(readers.shingled).read((language, pair.b) for pair in pairs)
    mine = shingled(words)
    found = []
    for pair in pairs:
        finding = judge(pair, mine, texts.get(pair.b.text_hash), limits)
        if finding is not None and finding.kind is not None:
            found.append(_told(finding, matches[pair.b.id]))
    return sorted(found, key=_worst_first)


async def _nominated(app: App, probe: Banded) -> tuple[int, ...]:
    spoken = await app.reader.do(runs.stories_by_language)
    refuse(await app.index.mark(), await ledger_id(app.reader), app.version, spoken)
    applied, [found] = await app.index.lookup([probe])
    there = None if applied is None else await app.reader.do(fingerprint_arrays.there, [found], applied)
    if there is None:
        raise Transient("the index is behind the ledger: a run, or `neardup reindex`, brings it up to date")
    held, unseen = there
    limits = {probe.language: app.config.detection.of(probe.language)}
    [nominee] = nominate([([CHECKED], probe)], [found], held, limits, unseen)
    return nominee.matches


def _worst_first(match: dict[str, Any]) -> tuple[int, int, float, int]:
    """The order of an export."""
    near = match["kind"] == Kind.NEAR
    larger = max(match["containment"] or 0, match["matched_containment"] or 0)
    score = larger if match["kind"] == Kind.PARTIAL else match["jaccard"]
    return list(Kind).index(match["kind"]), match["hamming"] if near else 0, -(score or 0), match["story_id"]


def _told(finding: Finding, story: sqlite3.Row) -> dict[str, Any]:
    scores = finding.scores
    return {
        "kind": finding.kind,
        "story_id": story["id"],
        "hamming": finding.hamming,
        "jaccard": scores and scores.jaccard,
        "containment": scores and scores.containment_a,
        "matched_containment": scores and scores.containment_b,
        "longest_run_words": scores and scores.longest_run_words,
        "estimated": scores is not None and scores.estimated,
        "title": story["title"],
        "author_id": story["author_id"],
        "published_at": rfc3339(story["published_at"]),
    }
