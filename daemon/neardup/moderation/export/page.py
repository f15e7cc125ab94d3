"""Exports as self-contained HTML pages of cases, of stories or of members of clusters, without scripts and requests.

The page of cases lists each with the pairs that show it best, and their copied passages, from the current texts.  It
has room for a few cases: each language and kind gets a fair share of the places, so that none keeps another from being
shown.  The page is streamed case by case.  The templates escape every value, so no markup of a story survives.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from neardup.config import Config
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.languages import Languages
from neardup.core.verify import tiers
from neardup.errors import Transient
from neardup.ledger import case_queue, flags, open_snapshot, similarities, story_rows
from neardup.ledger.case_queue import FlaggedCase
from neardup.ledger.flags import Selection
from neardup.ledger.passages import read_common
from neardup.ledger.similarities import Similarity
from neardup.moderation.evidence.alignment import PassagePair, align_stories, list_highlights
from neardup.moderation.export.tables import PAIRS, ExportRow, export_row
from neardup.moderation.templating import make_environment, make_font_rules, make_page_values, read_static
from neardup.pages.reader_pool import OpenReaderPool, ReaderPool
from neardup.query.compare import (
    Evidence,
    LoadedStory,
    StoryFacts,
    UnreadableStory,
    find_evidence,
    find_language,
    load_story,
)
from neardup.records import Kind, Language
from neardup.telemetry.log import log

MAX_CASES_SHOWN = 200  # shared by languages and kinds; reading the texts of more would burden the store
PAIRS_OF_A_CASE = 5

Tally = Counter[tuple[Language, Kind]]  # number of cases by (language, kind)
T = TypeVar("T")


class ListedCase(Struct, frozen=True):
    """A case on the page: the similarity of its lead, the pairs that are shown, and how many more were selected."""

    case: FlaggedCase
    found: Similarity
    pairs: list[ExportRow]
    more: int


def choose(db: sqlite3.Connection, selection: Selection) -> tuple[dict[FlaggedCase, list[int]], Tally]:
    """The cases to list, each with the ids of its flags to show, and the number of all selected cases."""
    every = case_queue.list_flagged_cases(db, selection)
    tally = Counter((case.language, case.kind) for case in every)
    places = share_fairly(tally, MAX_CASES_SHOWN)
    chosen: dict[FlaggedCase, list[int]] = {}
    for case in every:
        if places[case.language, case.kind]:
            places[case.language, case.kind] -= 1
            chosen[case] = case_queue.list_best_flags(db, selection, case.case_id, case.lead, PAIRS_OF_A_CASE)
    return chosen, tally


def list_cases(db: sqlite3.Connection, chosen: Mapping[FlaggedCase, list[int]]) -> list[ListedCase]:
    """The chosen cases with what the page says of them."""
    cluster_of = flags.map_clusters(db)
    rows = flags.read_by_id(db, [flag_id for flag_ids in chosen.values() for flag_id in flag_ids])
    cases: list[ListedCase] = []
    for case, flag_ids in chosen.items():
        pairs = [export_row(rows[flag_id], cluster_of) for flag_id in flag_ids if flag_id in rows]
        lead = case.lead if case.lead is not None or not pairs else pairs[0]["story_id"]
        found = None if lead is None else similarities.read_similarity(db, lead)
        if found is not None and pairs:
            shown = list(story_rows.show_ids(db, pairs, PAIRS.story_ids))
            cases.append(ListedCase(case, found, shown, case.flags - len(pairs)))
    return cases


def share_fairly(sizes: Mapping[T, int], places: int) -> Counter[T]:
    """The number of places of each group, in the order of `sizes`, in all at most `places`.

    No group gets a place that it cannot fill while another still needs it, and a group that does not get all it needs
    has at most one place less than any other (max-min fairness: Bertsekas and Gallager, Data Networks, 1992, 6.5.2).
    """
    granted: Counter[T] = Counter()
    smallest_first = sorted(sizes, key=lambda group: sizes[group])
    for n, group in enumerate(smallest_first):
        granted[group] = min(sizes[group], places // (len(sizes) - n))
        places -= granted[group]
    return Counter({group: granted[group] for group in sizes})


MAX_PAIRS_WITH_PASSAGES = 200  # reading more texts would burden the store for more than a person reads
PAIRS_IN_MEMORY = 8  # pairs whose texts are held in memory at a time
MAX_PASSAGES = 3  # per pair, the longest first


class CopiedPassages(Struct, frozen=True):
    """The longest passages of a pair (A is the match).

    `more` is the number of other passages; the shares are those of the words of A and B that are copied; `rare_words`
    are those by which one is the other rewritten.
    """

    passages: tuple[PassagePair, ...]
    more: int
    share_a: float
    share_b: float
    rare_words: tuple[str, ...] = ()


async def find_copied_passages(
    config: Config, open_pool: OpenReaderPool, pairs: Mapping[int, tuple[int, int]]
) -> dict[int, CopiedPassages]:
    """The passages of each flag's pair (A, B) of stories, by flag id; no entry if a text cannot be read."""
    with open_snapshot(config.ledger.path) as db:
        known = story_rows.describe(db, {story for pair in pairs.values() for story in pair})
        common = {language: read_common(db, language) for language in {row["language"] for row in known.values()}}
    remaining = list(pairs.items())
    copied: dict[int, CopiedPassages] = {}
    pool = open_pool()
    try:
        while remaining:
            batch, remaining = remaining[:PAIRS_IN_MEMORY], remaining[PAIRS_IN_MEMORY:]
            texts = await _load(pool, known, [story for _, pair in batch for story in pair])
            for flag_id, (a, b) in batch:
                passages = await asyncio.to_thread(_find_copied, config, texts.get(a), texts.get(b), common)
                if passages is not None:
                    copied[flag_id] = passages
    except Transient as error:
        log.warning("the store does not answer; the export has no further passages", why=str(error))
    finally:
        await pool.aclose()
    return copied


async def _load(
    pool: ReaderPool, known: Mapping[int, Mapping[str, Any]], ids: Sequence[int]
) -> dict[int, LoadedStory | UnreadableStory]:
    wanted = [story for story in dict.fromkeys(ids) if story in known]
    return dict(zip(wanted, await asyncio.gather(*(load_story(pool, known[n]) for n in wanted)), strict=True))


def _find_copied(
    config: Config,
    a: LoadedStory | UnreadableStory | None,
    b: LoadedStory | UnreadableStory | None,
    common: Mapping[Language, PassageHashes],
) -> CopiedPassages | None:
    if not (isinstance(a, LoadedStory) and isinstance(b, LoadedStory)):
        return None
    language = find_language(a, b)
    assert language is not None, "the ledger has both stories"
    facts = find_evidence(a, b, config.detection.of(language), common[language])
    aligned = align_stories(facts, a, b)
    longest = sorted(aligned.pairs, key=lambda pair: -pair.words)[:MAX_PASSAGES]
    shown = sorted(longest, key=lambda pair: pair.first)
    return CopiedPassages(
        tuple(shown),
        aligned.more + len(aligned.pairs) - len(shown),
        facts.share_a or 0.0,
        facts.share_b or 0.0,
        facts.rare_words,
    )


TEMPLATE = "export.html.j2"
SHEETS = "review.css", "export.css"
MAX_STORIES_SHOWN = 5000  # on a page of stories, or of members
BUFFERED_CHUNKS = 64  # chunks of the template's output that are written together

Passages = Mapping[int, CopiedPassages]  # by flag id


def write_page(
    path: Path, cases: Sequence[ListedCase], chosen: Tally, passages: Passages, *, registry: Languages
) -> None:
    """Write the page of these cases; `chosen` counts all selected ones, shown or not."""
    tally = Counter((listed.case.language, listed.case.kind) for listed in cases)
    languages = [language for language in registry if any(language == tallied for tallied, _ in tally)]
    kinds = [kind for kind in tiers.list_kinds() if any(kind == tallied for _, tallied in tally)]
    page = (
        make_environment(registry)
        .get_template(TEMPLATE)
        .stream(
            make_evidence=make_evidence,
            **make_page_values(_make_style(languages, kinds, tally) + make_font_rules(registry)),
            languages={shown: sum(n for (language, _), n in tally.items() if language == shown) for shown in languages},
            kinds={shown: sum(n for (_, kind), n in tally.items() if kind == shown) for shown in kinds},
            chosen=chosen.total(),
            left_out=[
                (language, kind, tally[language, kind], chosen[language, kind])
                for kind, language in product(kinds, languages)
                if tally[language, kind] < chosen[language, kind]
            ],
            cases=cases,
            passages=passages,
            legend=_list_highlights(passages),
        )
    )
    page.enable_buffering(BUFFERED_CHUNKS)
    page.dump(str(path), encoding="utf-8")


def _list_highlights(passages: Passages) -> set[str]:
    shown = [pair for copied in passages.values() for pair in copied.passages]
    return list_highlights(chain.from_iterable(pair.a for pair in shown), chain.from_iterable(pair.b for pair in shown))


def make_evidence(pair: ExportRow, copied: CopiedPassages | None) -> Evidence:
    """A pair as evidence, for the wording; A is the match."""
    a, b = (
        StoryFacts(
            pair[f"{side}_id"],
            language=pair["language"],
            title=pair[f"{side}_title"],
            path=pair[f"{side}_path"],
            author_id=pair[f"{side}_author_id"],
            published_at=pair[f"{side}_published_at"],
            updated_at=pair[f"{side}_updated_at"],
            known_since=pair[f"{side}_known_since"],
            **({"catalogue": pair["catalogue"], "licence": pair["licence"]} if side == "matched" else {}),
        )
        for side in ("matched", "story")
    )
    return Evidence(
        a=a,
        b=b,
        kind=pair["kind"],
        similarity=pair["similarity"],
        hamming=pair["hamming"],
        jaccard=pair["jaccard"],
        containment=pair["matched_containment"],
        matched_containment=pair["containment"],
        longest_run_words=pair["longest_run_words"],
        estimated=pair["estimated"],
        earlier="a" if pair["earlier_id"] is not None else None,
        same_author=pair["same_author"],
        share_a=None if copied is None else copied.share_a,
        share_b=None if copied is None else copied.share_b,
        rare_words=() if copied is None else copied.rare_words,
    )


def _make_style(languages: list[Language], kinds: list[Kind], tally: Tally) -> str:
    """The style sheets, and rules that hide the cases of other languages and kinds than those chosen."""
    chosen = [*(f"language-{name}" for name in languages), *(f"kind-{name}" for name in kinds)]
    rules = [f"body:has(#{name}:checked) .flag:not(.{name})" for name in chosen]
    hidden = f"{', '.join(rules)} {{ display: none }}\n" if rules else ""
    empty = [
        f"body:has(#language-{language}:checked):has(#kind-{kind}:checked) .none"
        for language, kind in product(languages, kinds)
        if not tally[language, kind]
    ]
    shown = f"{', '.join(empty)} {{ display: block }}\n" if empty else ""
    return read_static(*SHEETS) + hidden + shown


def write_stories_page(path: Path, stories: Iterable[ExportRow], chosen: int, *, registry: Languages) -> None:
    """Write the page of these stories that copy, the first of `chosen` that were selected."""
    _write_list(path, "stories.html.j2", registry, stories=list(stories), chosen=chosen)


def write_members_page(path: Path, members: Iterable[ExportRow], chosen: int, *, registry: Languages) -> None:
    """Write the page of these members of clusters, the first of `chosen` that were selected."""
    shown = list(members)
    clusters = [list(rows) for _, rows in groupby(shown, itemgetter("cluster_id"))]
    _write_list(path, "members.html.j2", registry, clusters=clusters, shown=len(shown), chosen=chosen)


def _write_list(path: Path, template: str, registry: Languages, **values: object) -> None:
    style = read_static(*SHEETS) + make_font_rules(registry)
    page = make_environment(registry).get_template(template).render(**make_page_values(style), **values)
    path.write_text(page, encoding="utf-8")
