"""Finds texts that come back: stories that match a text which was removed as plagiarism, or hold a part of it.

The removed text is gone, so its fingerprint and its passage hashes are compared.  There are few such texts: a story is
compared with all of them, whatever the index.

A part is found by the passage hashes that it shares.  6,033 real documents in ten languages have about
HASHES_PER_1000_WORDS of all sorts (`verify.text.Text.passages`).  A part must share as many as the words have that the
tier `passage` asks for: 10 for 75.  Some hashes are sampled by what surrounds the part: of parts of 75 words 45 % were
found, of 100 words 81 %, of 125 words 97 %, of 175 words all.  Every run of GRAM + WINDOW - 1 words shares a hash, and
none is sampled for more than WINDOW of these runs, so a part of 243 words that do not repeat is found for sure.  Of the
5.3 million pairs of these documents 5,336 share so many hashes apart from common passages.  All but 169 have 75 copied
words, and 109 of these have 40.
"""

from neardup.config import Detection
from neardup.core.candidates.banding import FingerprintArrays
from neardup.core.candidates.select import compare
from neardup.core.fingerprint.word_hashes import MIN_SHARED
from neardup.core.verify.scores import assess
from neardup.core.verify.spans import measure_share, measure_similarity
from neardup.core.verify.tiers import PASSAGE
from neardup.ledger import Ledger, outbox, removed_texts, story_rows, versions
from neardup.ledger.removed_texts import Returned
from neardup.nomination.passages import MAX_HOLDERS
from neardup.pipeline.passage_sync import PassageSync
from neardup.records import Candidate, PairedStory

STORIES_PER_READ = 2_000
HASHES_PER_1000_WORDS = 140
Removed = dict[int, PairedStory]


async def find_returned(ledger: Ledger, passages: PassageSync, detection: Detection) -> None:
    """Compare the stories that came since the last time with the texts that were removed as plagiarism.

    Called before segments are merged, so that few are looked up.  Raises PassagesDamaged.
    """
    await passages.keep_removed()
    checked, last = await ledger.do(removed_texts.read_checked), await ledger.do(outbox.read_last_seq)
    if last == checked:
        return
    held, removed = await ledger.do(removed_texts.read_all)
    found = list[Returned]()
    if removed:
        found += await _find_parts(ledger, passages, detection, removed, checked)
        found += await _find_whole_texts(ledger, detection, held, removed, checked)  # which replace their parts
    await ledger.do(removed_texts.record_checked, found, last)


async def _find_whole_texts(
    ledger: Ledger, detection: Detection, held: FingerprintArrays, removed: Removed, number: int
) -> list[Returned]:
    """The stories after a number that match by their fingerprints; `held` are those of the removed texts."""
    of_language, found = dict(held.by_language()), list[Returned]()
    while len(page := await ledger.do(versions.list_fingerprints_after, number, STORIES_PER_READ)):
        number = int(page.numbers[-1])
        pairs = set[tuple[int, int]]()
        for language, others in page.by_language():
            if (texts := of_language.get(language)) is not None:
                alike = compare(texts, others, detection.of(language).hamming)
                pairs |= set(zip(texts.ids[alike.stories].tolist(), others.ids[alike.others].tolist(), strict=True))
        known = await ledger.do(story_rows.describe, {story_id for _, story_id in pairs})
        for removed_id, story_id in sorted(pairs):
            if row := known.get(story_id):
                pair = Candidate(removed[removed_id], PairedStory.of_row(row))
                assessment = assess(pair, None, None, detection.of(pair.language))
                if assessment is not None and assessment.kind is not None:
                    similarity = measure_similarity(assessment, pair.a.words, pair.b.words)
                    found.append(Returned(row["number"], removed_id, assessment.kind, similarity))
    return found


async def _find_parts(
    ledger: Ledger, passages: PassageSync, detection: Detection, removed: Removed, number: int
) -> list[Returned]:
    """The stories after a number that hold a part of a removed text, by their passage hashes."""
    hashes = await ledger.do(removed_texts.read_passages)
    await passages.catch_up()
    looked_up = await passages.ask(lambda: passages.index.look_up(list(hashes.values()), MAX_HOLDERS, after=number))
    shared = {
        (removed_id, other): count
        for removed_id, matched in zip(hashes, looked_up, strict=True)
        for other, count in zip(matched.numbers.tolist(), matched.shared.tolist(), strict=True)
        if other > number and count >= _count_hashes(detection.of(removed[removed_id].language).passage_words)
    }
    ids = await ledger.do(versions.read_ids, list({other for _, other in shared}))
    rows = {row["number"]: row for row in (await ledger.do(story_rows.describe, ids.values())).values()}
    return [
        Returned(other, removed_id, PASSAGE, _estimate_share(count, text.words, row["words"]))
        for (removed_id, other), count in shared.items()
        if (row := rows.get(other)) is not None and row["language"] == (text := removed[removed_id]).language
    ]


def _count_hashes(words: int) -> int:
    """How many passage hashes so many words have."""
    return max(words * HASHES_PER_1000_WORDS // 1000, MIN_SHARED)


def _estimate_share(hashes: int, *words: int) -> float:
    """The share of the shorter of two texts, with so many words each, that so many shared hashes stand for."""
    return measure_share(hashes * 1000 // HASHES_PER_1000_WORDS, min(words))
