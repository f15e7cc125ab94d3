"""Law: what was copied has one answer.  The flag on record, the check before it, the library, the evidence, the page
of a pair, the exports and Spark say the same words, shares and similarity of one pair.
"""

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import neardup
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.config import Config, Content, Detection, Source
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.fingerprint.word_hashes import PassageHashes, hash_passages
from neardup.core.text.normalize import locate_words, tokenize
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.text import Text
from neardup.ledger import flags, passages, similarities, story_rows
from neardup.ledger.flags import Selection
from neardup.ledger.passages import CommonPassage
from neardup.moderation.evidence.alignment import Highlight, align_stories, list_stretches
from neardup.moderation.export.tables import convert_story_row, export_row, make_whole_row
from neardup.query.check import CheckResult, Submission
from neardup.query.compare import Evidence, choose_thresholds, find_evidence, read_common
from neardup.records import Language

from tests.support.checked_ledger import CheckedLedger, checked_ledger, text_of
from tests.support.compared_stories import story_of
from tests.support.languages import ENGLISH, GUJARATI, SAMPLED, TELUGU
from tests.support.sample_texts import STORIES, transliterated
from tests.support.sampling import count_examples

SOURCE, COPY = 1, 2  # ids
DETECTION = Detection()
CONFIG = Config(source=Source(kind="scan"), content=Content(url="file:/"))

Words = frozenset[int]  # their places in a text


class Answer(NamedTuple):
    """What was copied, as one output shows it."""

    kind: str | None
    similarity: float
    copied_words: int | None
    in_source: Words
    in_copy: Words
    share_of_source: float
    share_of_copy: float


class Pair(NamedTuple):
    """A story, another that copies from it, and a text in both that is common."""

    language: Language
    copy_language: Language
    source: str
    copy: str
    common: PassageHashes


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Blocks of a sample story, moved, edited, repeated and put among those of another, with or without a prayer."""
    language = draw(st.sampled_from(SAMPLED))
    chance = random.Random(draw(st.integers(0, 2**32)))
    source, other, prayer = ([word.decode() for word in tokenize(text)] for text in chance.sample(STORIES[language], 3))
    size = draw(st.integers(20, 150))
    blocks = [source[start : start + size] for start in range(0, len(source) - size + 1, size)]
    kept = [source] if draw(st.booleans()) else chance.choices(blocks, k=draw(st.integers(1, len(blocks))))
    replaced = draw(st.sampled_from([0.0, 0.02, 0.1]))
    copied = [chance.choice(other) if chance.random() < replaced else word for word in chain.from_iterable(kept)]
    around = other[: draw(st.sampled_from([0, 60, 600]))]
    shared = prayer[:120] if draw(st.booleans()) else []
    copy = " ".join([*shared, *around, *copied])
    copy_language = language
    if language != ENGLISH and draw(st.integers(0, 4)) == 0:
        copy_language = GUJARATI if language == TELUGU else TELUGU
        copy = transliterated(copy, language, copy_language)
    common = hash_passages(Text(" ".join(shared)).word_hashes) if shared else NO_HASHES
    return Pair(language, copy_language, " ".join([*source[:40], *shared, *source[40:]]), copy, common)


def places(spans: Sequence[Sequence[int]]) -> Words:
    return frozenset(word for start, end in spans for word in range(start, end))


def answer(  # noqa: PLR0917 - the fields of an answer, in their order
    pair: Pair, kind: str | None, similarity: float, copied_words: int | None, in_source: Words, in_copy: Words
) -> Answer:
    """An output that shows spans and no shares."""
    sizes = len(tokenize(pair.source)), len(tokenize(pair.copy))
    shares = len(in_source) / sizes[0], len(in_copy) / sizes[1]
    return Answer(kind, similarity, copied_words, in_source, in_copy, *shares)


def of_check(pair: Pair, result: CheckResult) -> Answer:
    [match] = result.matches
    spans = [(match.spans, (2, 3)), (match.spans, (0, 1))]
    in_source, in_copy = (places([[row[side] for side in sides] for row in rows]) for rows, sides in spans)
    return answer(pair, match.kind, match.similarity, match.copied_words, in_source, in_copy)


def of_evidence(facts: Evidence) -> Answer:
    assert facts.share_a is not None and facts.share_b is not None and facts.similarity is not None
    sides = places(facts.spans_a), places(facts.spans_b), facts.share_a, facts.share_b
    return Answer(facts.kind, facts.similarity, facts.copied_words, *sides)


def of_library(pair: Pair) -> Answer:
    found = neardup.compare(pair.source, pair.copy, str(pair.language))
    sides = []
    for text, spans in ((pair.source, found.spans_a), (pair.copy, found.spans_b)):
        starts = locate_words(text).starts
        sides.append(
            frozenset(n for n, start in enumerate(starts) if any(first <= start < end for first, end in spans))
        )
    return answer(pair, found.kind, found.similarity, found.copied_words, *sides)


def of_export(pair: Pair, row: Mapping[str, Any]) -> Answer:
    assert (row["matched_id"], row["story_id"]) == (SOURCE, COPY)
    in_source, in_copy = (places(json.loads(row[f"{side}_spans"] or "[]")) for side in ("matched", "story"))
    return answer(pair, row["kind"], row["similarity"], row["copied_words"], in_source, in_copy)


def of_spark(pair: Pair) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The row of the pair, and that of the story that copies."""
    from neardup.spark import results, verification  # noqa: PLC0415 - Spark is an extra

    row: dict[str, Any] = {"by_passages": True}
    for side, story_id, language, text in (
        ("a", SOURCE, pair.language, pair.source),
        ("b", COPY, pair.copy_language, pair.copy),
    ):
        made = fingerprint_text(text)
        assert made is not None
        facts: dict[str, Any] = dict.fromkeys(verification.FACTS)
        facts |= {"id": story_id, "language": language, "published_at": story_id, "text": text, "author_id": side}
        facts |= {name: getattr(made, name) for name in ("text_hash", "simhash", "signature", "words", "shingles")}
        row |= {f"{name}_{side}": value for name, value in facts.items()}
    common = {pair.language: pair.common}
    [flag] = verification.make_rows([row], Text, common, CONFIG, flagged_at=0)
    return flag, results.make_story_row([flag]) if flag.get("kind") else None


async def submit(platform: CheckedLedger, pair: Pair) -> CheckResult:
    """Store both stories as a service does; returns the check of the copy before it was stored."""
    rows = [CommonPassage(pair.language, int(hash_), 60, None, 1) for hash_ in pair.common]
    await platform.ledger.do(passages.record_common, rows)
    await platform.put(pair.language, SOURCE, pair.source.split(), author="a")
    submission = Submission(pair.copy_language, text_of(pair.copy.split()), author_id="b")
    checked = await platform.checker.check(submission)
    await platform.put(pair.copy_language, COPY, pair.copy.split(), author="b")
    return checked


def assert_one_answer(pair: Pair, checked: CheckResult, db: Any) -> None:
    row = flags.read_pair(db, SOURCE, COPY)
    facts_of = story_rows.describe(db, [SOURCE, COPY])
    a, b = (story_of(text, **dict(facts_of[story])) for story, text in ((SOURCE, pair.source), (COPY, pair.copy)))
    facts = find_evidence(a, b, choose_thresholds(DETECTION, a, b), read_common(db, a, b))
    spark_flag, spark_story = of_spark(pair)
    if row is None:  # too little of a short text is shared to nominate it
        assert not checked.matches, "a check finds what is not on record"
        return
    [(in_copy, in_source)] = similarities.read_spans(db, COPY).values()
    words = places(in_source.tolist()), places(in_copy.tolist())
    flagged = answer(pair, row["kind"], row["similarity"], row["copied_words"], *words)
    assert flagged.similarity == max(flagged.share_of_source, flagged.share_of_copy), "not the larger share"
    exported = make_whole_row(db, export_row(row, {}))
    answers = {
        "evidence": of_evidence(facts),
        "export": of_export(pair, exported),
        "check": of_check(pair, checked),
        "Spark": of_spark_flag(pair, spark_flag),
    }
    if not len(pair.common) and pair.language == pair.copy_language:
        answers["library"] = of_library(pair)
    for name, given_answer in answers.items():
        assert given_answer == flagged, f"{name} says something else than the flag"
    assert facts.longest_run_words == row["longest_run_words"] == exported["longest_run_words"]
    found = similarities.read_similarity(db, COPY)
    assert found is not None
    [listed] = map(convert_story_row, similarities.select(db, Selection())) if found.copied_words else [None]
    shares = {
        "story": found.similarity,
        "source": found.sources[0].share,
        "check": checked.similarity,
        "evidence": facts.share_b,
        "export by story": listed["similarity"] if listed else 0.0,
        "Spark": spark_story["similarity"] if spark_story else 0.0,
    }
    assert set(shares.values()) == {flagged.share_of_copy}, f"similarities differ: {shares}"
    assert_highlighted(facts, flagged)
    shown = align_stories(facts, a, b)
    assert shown.more or sum(group.words for group in shown.pairs) == sum(passage.words for passage in facts.passages)


def of_spark_flag(pair: Pair, row: Mapping[str, Any]) -> Answer:
    assert row.get("kind"), "Spark finds no copy"
    return of_export(pair, row)


def assert_highlighted(facts: Evidence, flagged: Answer) -> None:
    """A page highlights the copied words of both sides, and no others."""
    for side, expected in zip(list_stretches(facts), (flagged.in_source, flagged.in_copy), strict=True):
        copied = [stretch for stretch in side if stretch.highlight in {Highlight.COPIED, Highlight.CHANGED}]
        assert places([(stretch.first, stretch.end) for stretch in copied]) == expected, "a page shows other words"


@settings(deadline=None, max_examples=count_examples(60))
@given(pairs())
def test_every_output_gives_the_same_answer(pair: Pair) -> None:
    pytest.importorskip("pyspark")

    async def check() -> None:
        with TemporaryDirectory() as folder:
            async with checked_ledger(Path(folder), DETECTION) as platform:
                checked = await submit(platform, pair)
                await platform.ledger.do(lambda db: assert_one_answer(pair, checked, db))

    asyncio.run(check())
