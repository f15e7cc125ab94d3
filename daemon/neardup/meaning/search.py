"""The search for translated and retold copies among the stories that have vectors.

The codes nominate, the margin of the aligned chunks decides.  The pairs of a batch are on record in the ledger before
its stories count as searched, so that a run that ends anywhere finds the same pairs again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial

from msgspec import Struct, field

from neardup.config import Config, Detection
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.scores import ComparedPair, assess_all
from neardup.core.verify.tiers import RETOLD, TRANSLATED
from neardup.ledger import Ledger, candidates, meaning_flags
from neardup.ledger.meaning_flags import MeaningFlag
from neardup.meaning import margins, neighbours, vectors
from neardup.meaning.margins import pair_chunks
from neardup.meaning.neighbours import Compared, Searched
from neardup.meaning.parts import Parts
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.text_cache import Texts
from neardup.records import Kind, Language

BATCH_STORIES = 10_000  # searched for in one pass over the codes
STORIES_AT_ONCE = 500  # whose candidates' backgrounds are in memory together, about 45 MB
PAIRS_AT_ONCE = 250  # whose texts are in memory together

Margins = dict[tuple[int, int], float]  # of pairs, the lower id first


class SearchSummary(Struct):
    """How many stories were searched for, the new pairs by kind, and the pairs that are copies by their words."""

    searched: int = 0
    found: dict[Kind, int] = field(default_factory=lambda: {TRANSLATED: 0, RETOLD: 0})
    copies: int = 0


async def search(config: Config, parts: Parts, readers: ReaderPool, stop: asyncio.Event) -> SearchSummary:
    """Search for the stories whose vectors are new until done or `stop` is set.  Raises Fatal."""
    summary, texts = SearchSummary(), Texts(readers.read_to_compare)
    least = margins.find_thresholds(await parts.vectors.do(neighbours.read_distributions), parts.section.false_alarms)
    with closing(Ledger(config.ledger.path)) as ledger:
        while not stop.is_set() and (ids := await parts.vectors.do(neighbours.read_unsearched, BATCH_STORIES)):
            found, searched = await _find_margins(parts, ledger, ids, least)
            margin_of = dict(sorted(found.items()))
            others = await _leave_out_copies(ledger, config.detection, texts, list(margin_of))
            summary.copies += len(margin_of) - len(others)
            flags = await _make_flags(parts, {pair: margin_of[pair] for pair in others})
            put = partial(meaning_flags.put, same_author=config.detection.same_author == "keep")
            for kind, new in (await ledger.do(put, flags, parts.embedder.model)).items():
                summary.found[kind] += new
            await parts.vectors.do(neighbours.put_searched, searched)
            summary.searched += len(ids)
    return summary


async def _find_margins(
    parts: Parts, ledger: Ledger, ids: Sequence[int], least: Mapping[Kind, float]
) -> tuple[Margins, list[Searched]]:
    """The margins of the pairs of these stories that no flag has, and what the file keeps of each story.

    The margins are those from `least` on, the threshold of the kind.
    """
    nominated = await parts.vectors.do(neighbours.nominate, ids)
    compared = await parts.vectors.do(neighbours.compare_all, nominated)
    flagged = await ledger.do(meaning_flags.find_flagged_by_words, nominated)
    found, searched = Margins(), list[Searched]()
    for at in range(0, len(ids), STORIES_AT_ONCE):
        part = {story: compared[story] for story in ids[at : at + STORIES_AT_ONCE]}
        others = {other for story in part for other in nominated[story]}
        known = await parts.vectors.do(neighbours.read_backgrounds, others - compared.keys())
        known |= {other: compared[other].backgrounds for other in others & compared.keys()}
        more, done = await asyncio.to_thread(_measure_margins, part, flagged, known, least)
        found |= more
        searched += done
    return found, searched


def _measure_margins(
    compared: Mapping[int, Compared],
    flagged: set[tuple[int, int]],
    known: Mapping[int, Mapping[Language, float]],
    least: Mapping[Kind, float],
) -> tuple[Margins, list[Searched]]:
    found, searched = Margins(), list[Searched]()
    for story, (language, similarities, backgrounds) in compared.items():
        widest = dict[Kind, float]()
        for other_language, similarity_of in similarities.items():
            kind, own = margins.choose_kind(language, other_language), backgrounds[other_language]
            for other, similarity in similarity_of.items():
                pair = min(story, other), max(story, other)
                if pair[1] < 0 or pair in flagged:  # works of the reference are not compared with each other
                    continue
                margin = margins.compute_margin(similarity, own, known.get(other, {}).get(language, own))
                widest[kind] = max(margin, widest.get(kind, margin))
                if margin >= least[kind]:
                    found[pair] = margin
        searched.append(Searched(story, backgrounds, widest))
    return found, searched


async def _leave_out_copies(
    ledger: Ledger, detection: Detection, texts: Texts, pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The pairs that are no copies by their words, also not where a limit kept them from being nominated."""
    kept = list[tuple[int, int]]()
    for at in range(0, len(pairs), PAIRS_AT_ONCE):
        part = await ledger.do(candidates.read_candidates, pairs[at : at + PAIRS_AT_ONCE])
        compared, _ = await texts.read_pairs(part)
        kept += await asyncio.to_thread(_find_not_copied, compared, detection)
    return kept


def _find_not_copied(pairs: Sequence[ComparedPair], detection: Detection) -> list[tuple[int, int]]:
    assessed = assess_all(pairs, detection.of, lambda _: NO_HASHES)
    return [
        (pair.a.id, pair.b.id)
        for (pair, *_), assessment in zip(pairs, assessed, strict=True)
        if assessment is None or assessment.kind is None
    ]


async def _make_flags(parts: Parts, margin_of: Margins) -> list[MeaningFlag]:
    """The pairs as the ledger keeps them."""
    ids = {story for pair in margin_of for story in pair}
    held = await parts.vectors.do(vectors.read_held, ids)
    chunks = await parts.vectors.do(neighbours.read_centred, ids)
    flags = list[MeaningFlag]()
    for (a, b), margin in margin_of.items():
        (language, text_hash), (other_language, other_hash) = held[a], held[b]
        kind = margins.choose_kind(language, other_language)
        aligned = pair_chunks(chunks[a].chunks, chunks[b].chunks)
        flags.append(MeaningFlag(a, b, kind, round(margin, 4), aligned, text_hash, other_hash))
    return flags
