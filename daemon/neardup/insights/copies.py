"""Measures recall: copies the user's own stories by every edit, and runs the real pipeline on the copies.

What is then on record is measured: copies found, pairs by score, pairs of different origin.  What two texts have in
common is computed from sets of words here, and not by the code that is measured.  The figures are one object, which
`--json` prints; the tables show most of it.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import combinations, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from neardup.app import App, open_app, run_once
from neardup.config import Config, Content, Detection, Export, Extract, Index, Ledger, Source
from neardup.core.intervals import estimate_share
from neardup.core.languages import SHIPPED
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.core.text.normalize import tokenize
from neardup.core.verify.scores import NEAR_MISS
from neardup.core.verify.tiers import list_kinds
from neardup.insights.corpus import COPIES, Copy, Corpus, Original, plant, sample, write_manifest, write_pages
from neardup.insights.disguises import DISGUISED_EDITS, DISGUISES
from neardup.insights.edits import OTHER_SCRIPT
from neardup.insights.tables import ALL, SHOWN_PAIRS, Facts, Table, format_cell, format_interval
from neardup.insights.truth import FALSE_BELOW, make_precision_tables, measure_precision_on_record
from neardup.pipeline.summary import Watch
from neardup.records import Kind, Language, format_count

RUN = 5  # words
FALSE_BELOW_WORDS = 30  # a flagged pair with less than this in common runs, and with low scores, is false
# At least, so that the copies of one story do not displace each other, and their text is not taken to be common.
MAX_MATCHES, COMMON_PASSAGE = 200, 1000
CACHED_TEXTS = 2000
DISGUISED = {OTHER_SCRIPT, *(edit.name for edit in DISGUISED_EDITS)}


def measure_scores(a: Sequence[bytes], b: Sequence[bytes]) -> tuple[float, float]:
    """The Jaccard similarity of the sets of word pairs of two texts, and the containment of the smaller."""
    pairs_a, pairs_b = (frozenset[Sequence[bytes]](pairwise(words)) or frozenset([tuple(words)]) for words in (a, b))
    common = len(pairs_a & pairs_b)
    return common / len(pairs_a | pairs_b), common / min(len(pairs_a), len(pairs_b))


def count_words_in_common_runs(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    """Count the words of `a` that are in a run of RUN words that `b` has too."""
    known = set(_list_runs(b))
    return len({n + k for n, run in enumerate(_list_runs(a)) if run in known for k in range(RUN)})


def _list_runs(words: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    return [tuple(words[n : n + RUN]) for n in range(len(words) - RUN + 1)]


class Pair(Struct, frozen=True):
    """A pair on record, by the stories' positions in the corpus; `kind` is None for a near miss."""

    a: int
    b: int
    kind: Kind | None
    jaccard: float
    containment: float


class Scored(Struct, frozen=True):
    """The scores, as (Jaccard, containment), of the pairs on record of an original and a copy of it as a whole.

    `planted` are the pairs of a copy with its own original, `copies` the number of copies in the corpus.  `unrelated`
    are the pairs that share no text by design.  `left_out` counts the pairs that overlap for another reason.
    """

    copies: int
    planted: Sequence[tuple[float, float]]
    unrelated: Sequence[tuple[float, float]]
    left_out: int


def count_kinds(corpus: Corpus, pairs: Iterable[Pair]) -> dict[str, Counter[Kind | None]]:
    """Count for each way of copying the kinds as which its copies were flagged with their originals; None if not.

    A work counts once for each of its chapters.
    """
    kinds = {(pair.a, pair.b): pair.kind for pair in pairs}
    originals = {story.origins[0]: place for place, story in enumerate(corpus.stories) if story.copy is None}
    out: dict[str, Counter[Kind | None]] = {}
    for place, story in enumerate(corpus.stories):
        if story.copy is not None:
            counts = out.setdefault(story.copy.name, Counter())
            for origin in story.origins:
                counts[kinds.get((originals[origin], place))] += 1
    return out


def score_pairs(corpus: Corpus, pairs: Sequence[Pair]) -> Scored:
    """Divide the pairs on record of an original and a copy by whether they are planted.

    Left out are the pairs of a copy with the donors of its foreign text, and with originals that overlap with these
    donors or with its own original.
    """
    planted, unrelated, left_out = [], [], 0
    related = _relate_originals(corpus, pairs)
    for pair, original, copy in _list_original_copy_pairs(corpus, pairs):
        if original == copy:
            planted.append((pair.jaccard, pair.containment))
        elif original in related[copy]:
            left_out += 1
        else:
            unrelated.append((pair.jaccard, pair.containment))
    copies = sum(story.copy is not None and not story.copy.part for story in corpus.stories)
    return Scored(copies, planted, unrelated, left_out)


def select_cross_flags(corpus: Corpus, pairs: Iterable[Pair]) -> list[Pair]:
    """The flagged pairs of stories that have text of no common original."""
    return [pair for pair in pairs if pair.kind is not None and not corpus.share_origin(pair.a, pair.b)]


def count_cross_pairs(corpus: Corpus) -> int:
    """Count the pairs of stories that have text of no common original."""
    of_origin: dict[int, list[int]] = {}
    for place, story in enumerate(corpus.stories):
        for origin in story.origins:
            of_origin.setdefault(origin, []).append(place)
    related = {pair for places in of_origin.values() for pair in combinations(places, 2)}
    n = len(corpus.stories)
    return n * (n - 1) // 2 - len(related)


def _list_original_copy_pairs(corpus: Corpus, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, int, int]]:
    """The pairs of an original and a copy as a whole, each with the number of the original and that of the copy's."""
    for pair in pairs:
        a, b = sorted((corpus.stories[pair.a], corpus.stories[pair.b]), key=lambda story: story.copy is not None)
        if a.copy is None and b.copy is not None and not b.copy.part:
            yield pair, a.origins[0], b.origins[0]


def _relate_originals(corpus: Corpus, pairs: Iterable[Pair]) -> Mapping[int, frozenset[int]]:
    """For each original: itself, the donors of its copies, and the originals that overlap with any of these."""
    overlapping: list[set[int]] = [{n} for n in range(len(corpus.originals))]
    for pair in pairs:
        a, b = corpus.stories[pair.a], corpus.stories[pair.b]
        if a.copy is b.copy is None and max(pair.jaccard, pair.containment) >= NEAR_MISS:
            overlapping[a.origins[0]].add(b.origins[0])
            overlapping[b.origins[0]].add(a.origins[0])
    return {
        origin: frozenset().union(*(overlapping[n] for n in {origin} | corpus.donors[origin]))
        for origin in range(len(corpus.originals))
    }


class FalseFlag(Struct, frozen=True):
    """A flagged pair with little in common: its stories by id and edit, and its scores, computed separately."""

    a: int
    b: int
    edit_a: str | None
    edit_b: str | None
    kind: Kind
    jaccard: float
    containment: float


class Measured(Struct, frozen=True):
    """The measurements of one corpus.

    `flagged_as` counts the copies of each edit by the kind of their flag.  `cross_pairs` is the number of pairs of
    different origin, `cross_flags` the number of flags among them.
    """

    language: Language
    originals: int
    flagged_as: Mapping[str, Counter[Kind | None]]
    scored: Scored
    cross_pairs: int
    cross_flags: int
    false_flags: Sequence[FalseFlag]


async def measure(config: Config, corpora: Sequence[Corpus], folder: Path, watch: Watch) -> list[Measured]:
    """Run the pipeline over some corpora, whose pages are in `folder`, with the thresholds of `config`."""
    write_manifest(corpora, folder)
    async with open_app(make_temporary_config(config, folder)) as app:
        await run_once(app, "backfill", asyncio.Event(), watch)
        return [await _measure(app, corpus, folder) for corpus in corpora]


async def _measure(app: App, corpus: Corpus, folder: Path) -> Measured:
    pairs = await app.reader.do(_read_pairs, corpus)
    cross_flags = select_cross_flags(corpus, pairs)
    return Measured(
        language=corpus.originals[0].language,
        originals=len(corpus.originals),
        flagged_as=count_kinds(corpus, pairs),
        scored=score_pairs(corpus, pairs),
        cross_pairs=count_cross_pairs(corpus),
        cross_flags=len(cross_flags),
        false_flags=await asyncio.to_thread(_find_false_flags, cross_flags, corpus, folder),
    )


def make_temporary_config(config: Config, folder: Path) -> Config:
    """The configuration of a run over `folder`, with files and SQLite, and with the detection settings of `config`."""
    detection = _set_max_matches(config.detection, max(MAX_MATCHES, config.detection.max_matches))
    common_passage = max(COMMON_PASSAGE, detection.common_passage)
    return replace(
        config,
        source=Source(manifest=folder / "manifest.csv"),
        content=Content(url=f"file:{folder / 'html'}"),
        extract=Extract(),
        index=Index(),
        ledger=Ledger(path=folder / "neardup.db"),
        detection=replace(detection, common_passage=common_passage),
        export=Export(),
    )


def _read_pairs(db: sqlite3.Connection, corpus: Corpus) -> list[Pair]:
    """The open flags and the near misses of a corpus.  A pair of two corpora, of two languages, is of neither."""
    scores = "coalesce(jaccard, 1 - hamming / 128.0), coalesce(max(containment_a, containment_b), 1 - hamming / 128.0)"
    rows = db.execute(
        f"SELECT a, b, kind, {scores} FROM flags WHERE status = 'open' AND a >= :first AND b <= :last"
        f" UNION ALL SELECT a, b, NULL, {scores} FROM candidates"
        " WHERE verified_at IS NOT NULL AND a >= :first AND b <= :last",
        {"first": corpus.ids[0], "last": corpus.ids[-1]},
    )
    return [Pair(a - corpus.first, b - corpus.first, kind, *alike) for a, b, kind, *alike in rows]


def _set_max_matches(detection: Detection, most: int) -> Detection:
    """The same detection with another `max_matches`, in every language."""
    update = {"max_matches": most}
    languages = {language: replace(own, **update) for language, own in detection.languages.items()}
    return replace(detection, **update, languages=languages)


def _find_false_flags(flagged: Iterable[Pair], corpus: Corpus, folder: Path) -> list[FalseFlag]:
    """The flags with little in common by their word pairs and runs, computed without the code that is measured."""

    @lru_cache(CACHED_TEXTS)
    def words_of(place: int) -> list[bytes]:
        story = corpus.stories[place]
        if story.copy and story.copy.name in DISGUISED:  # its words are compared as the others have them
            return tokenize(corpus.originals[story.origins[0]].text)
        page = (folder / "html" / f"{corpus.first + place}.html").read_bytes()
        return tokenize(extract_page_text(page, None, Extraction()))

    false_flags = []
    for pair in sorted(flagged, key=lambda pair: (pair.a, pair.b)):
        a, b = words_of(pair.a), words_of(pair.b)
        jaccard, containment = measure_scores(a, b)
        if max(jaccard, containment) < FALSE_BELOW and count_words_in_common_runs(a, b) < FALSE_BELOW_WORDS:
            (id_a, edit_a), (id_b, edit_b) = corpus.describe(pair.a), corpus.describe(pair.b)
            assert pair.kind is not None
            false_flags.append(FalseFlag(id_a, id_b, edit_a, edit_b, pair.kind, jaccard, containment))
    return false_flags


THRESHOLDS = [n / 100 for n in range(30, 91, 5)]
MILLION = 1_000_000
SCORES = ("jaccard", "containment")


def compute_facts(measured: Sequence[Measured]) -> Facts:
    """All figures of some corpora: rows by language, then a row for all languages together."""
    return {
        "stories": {
            language: {
                "originals": corpora[0].originals,
                "copies": sum(counts.total() for corpus in corpora for counts in corpus.flagged_as.values()),
            }
            for language, corpora in _group_by_language(measured).items()
        },
        "recall": list(_compute_recall(measured)),
        "false_flags": list(_rate_false_flags(measured)),
        "thresholds": list(_compute_thresholds(measured)),
        "left_out_of_thresholds": sum(corpus.scored.left_out for corpus in measured),
        "false_pairs": sorted(
            ({"language": corpus.language, **asdict(flag)} for corpus in measured for flag in corpus.false_flags),
            key=lambda pair: (max(pair["jaccard"], pair["containment"]), pair["a"], pair["b"]),
        ),
    }


def _group_by_language(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    out: dict[str, list[Measured]] = {}
    for corpus in measured:
        out.setdefault(corpus.language, []).append(corpus)
    return out


def _add_all(measured: Sequence[Measured]) -> Iterator[tuple[str, Sequence[Measured]]]:
    yield from _group_by_language(measured).items()
    yield ALL, measured


def _compute_recall(measured: Sequence[Measured]) -> Iterator[Facts]:
    for language, corpora in _add_all(measured):
        for copy in COPIES:
            flagged = sum((corpus.flagged_as.get(copy.name, Counter()) for corpus in corpora), Counter[Kind | None]())
            if n := flagged.total():
                yield {
                    "language": language,
                    "edit": copy.name,
                    "n": n,
                    **{kind: asdict(estimate_share(flagged[kind], n)) for kind in list_kinds()},
                    ALL: asdict(estimate_share(n - flagged[None], n)),
                }


def _rate_false_flags(measured: Sequence[Measured]) -> Iterator[Facts]:
    for language, corpora in _add_all(measured):
        pairs = sum(corpus.cross_pairs for corpus in corpora)
        false = estimate_share(sum(len(corpus.false_flags) for corpus in corpora), pairs)
        yield {
            "language": language,
            "pairs": pairs,
            "flagged": sum(corpus.cross_flags for corpus in corpora),
            "false": false.found,
            "per_million": MILLION * (false.share or 0),
            "low": MILLION * false.low,
            "high": MILLION * false.high,
        }


def _compute_thresholds(measured: Sequence[Measured]) -> Iterator[Facts]:
    """Recall and precision if a threshold on one score alone decided which pairs on record are flagged."""
    copies = sum(corpus.scored.copies for corpus in measured)
    planted, unrelated = (
        np.array([pair for corpus in measured for pair in getattr(corpus.scored, name)], np.float64).reshape(
            -1, len(SCORES)
        )
        for name in ("planted", "unrelated")
    )
    for threshold in THRESHOLDS:
        right, wrong = (planted >= threshold).sum(axis=0).tolist(), (unrelated >= threshold).sum(axis=0).tolist()
        yield {
            "threshold": threshold,
            **{
                score: {
                    "recall": asdict(estimate_share(right[n], copies)),
                    "precision": asdict(estimate_share(right[n], right[n] + wrong[n])),
                }
                for n, score in enumerate(SCORES)
            },
        }


# The evaluation

# In one corpus, most of the work would be to verify copies of a story against each other.  Therefore the ways of
# copying are distributed over several corpora, each with all the originals.
CORPORA = 4
# To start a run takes seconds.  Therefore one run has the originals of as many languages as make this many, and a
# sample of few originals is one corpus.
ORIGINALS, FEW = 300, 5


class Progress(Struct, frozen=True):
    """How progress is shown: of a listing by its number of stories, and of a run."""

    show_count: Callable[[str], AbstractContextManager[Callable[[int], None]]]
    show_progress: Callable[[str], AbstractContextManager[Watch]]


async def evaluate_copies(config: Config, stories: int, min_words: int, seed: int, progress: Progress) -> Facts:
    """Copy that many stories of each language, and measure how many of the copies are found.

    Raises Fatal if there is nothing to copy, and what listing and running raise.
    """
    precision = measure_precision_on_record(config.ledger.path)
    with progress.show_count("listing") as show_listed:
        sampled = await sample(config, stories, min_words, seed, show_listed)
    measured = []
    for group in _divide(list(sampled.values())):
        languages = ", ".join(originals[0].language for originals in group)
        corpora_each = CORPORA if sum(map(len, group)) > FEW else 1
        for n in range(corpora_each):
            copies = COPIES[n::corpora_each]
            with (
                progress.show_progress(f"{languages} {n + 1}/{corpora_each}") as watch,
                TemporaryDirectory(prefix="neardup-evaluate-") as name,
            ):
                corpora = await asyncio.to_thread(_plant, group, copies, seed, Path(name))
                measured += await measure(config, corpora, Path(name), watch)
    return compute_facts(measured) | {"verdicts": precision}


def _divide(samples: Sequence[Sequence[Original]]) -> Iterator[list[Sequence[Original]]]:
    """Divide the samples of the languages into groups of at least ORIGINALS stories, except the last."""
    group: list[Sequence[Original]] = []
    for originals in samples:
        group.append(originals)
        if sum(map(len, group)) >= ORIGINALS:
            yield group
            group = []
    if group:
        yield group


def _plant(group: Iterable[Sequence[Original]], copies: Sequence[Copy], seed: int, folder: Path) -> list[Corpus]:
    """Write a corpus of each language into `folder`."""
    corpora: list[Corpus] = []
    for originals in group:
        corpus, texts = plant(originals, copies, seed, first=corpora[-1].ids.stop if corpora else 0)
        write_pages(corpus, texts, folder)
        corpora.append(corpus)
    return corpora


# Its tables

CODES = SHIPPED.codes
BARS = "▁▂▃▄▅▆▇█"


def make_copies_tables(facts: Facts) -> list[Table]:
    """The tables that are printed; `--json` has every figure, also the recall by kind of each language."""
    together = [row for row in facts["recall"] if row["language"] == ALL]
    return [
        _make_language_table(facts, together),
        _make_strength_table(together),
        _make_kind_table(together),
        Table(
            "False flags",
            "Pairs of different origin that are flagged although they have little in common, and their share of all "
            f"pairs of different origin. Little means, computed separately: fewer than {FALSE_BELOW_WORDS} words in "
            f"common runs of {RUN} words or more, and Jaccard similarity and containment of the word pairs below "
            f"{FALSE_BELOW}.",
            ("language", "pairs compared", "flagged", "false", "per million", "95 % interval"),
            [
                (
                    *(row[name] for name in ("language", "pairs", "flagged", "false")),
                    f"{row['per_million']:.2f}",
                    f"{row['low']:.2f} - {row['high']:.2f}",
                )
                for row in facts["false_flags"]
            ],
        ),
        _make_thresholds_table(facts),
        *([_make_false_pairs_table(facts["false_pairs"])] if facts["false_pairs"] else []),
        *make_precision_tables(facts["verdicts"]),
    ]


def _make_language_table(facts: Facts, together: Iterable[Facts]) -> Table:
    share = {(row["edit"], row["language"]): row[ALL]["share"] for row in facts["recall"]}
    languages = list(facts["stories"])
    return Table(
        "Recall, all kinds together",
        "The share of copies that were flagged with their originals, as any kind. A run stands in another story that "
        "stays whole; a chapter is an original, flagged with a longer work of several.",
        ("copy", *(CODES.get(language, language) for language in languages), ALL, "95 % interval"),
        [
            (
                row["edit"],
                *(share.get((row["edit"], language)) for language in languages),
                row[ALL]["share"],
                format_interval(row[ALL]),
            )
            for row in together
        ],
    )


def _make_strength_table(rows: Iterable[Facts]) -> Table:
    """The curves of the disguises, each with a bar a strength."""
    recall = {row["edit"]: row[ALL]["share"] for row in rows}
    return Table(
        "Recall by strength of a disguise, all languages",
        "The strength is the share of the words that are changed, or of the letters that are misread.",
        ("disguise", "", "strength: recall"),
        [
            (
                disguise.name,
                "".join(BARS[round(share * (len(BARS) - 1))] for _, share in curve),
                "  ".join(f"{strength:.0%}: {format_cell(share)}" for strength, share in curve),
            )
            for disguise in DISGUISES
            if (curve := [(n, recall[name]) for n in disguise.strengths if (name := disguise.edit_name(n)) in recall])
        ],
    )


def _make_kind_table(rows: Iterable[Facts]) -> Table:
    return Table(
        "Recall by kind, all languages",
        "",
        ("copy", "n", *list_kinds(), ALL, "95 % interval"),
        [
            (
                row["edit"],
                str(row["n"]),
                *(row[kind]["share"] for kind in (*list_kinds(), ALL)),
                format_interval(row[ALL]),
            )
            for row in rows
        ],
    )


def _make_thresholds_table(facts: Facts) -> Table:
    left_out = format_count(facts["left_out_of_thresholds"], "pair that overlaps", "pairs that overlap")
    return Table(
        "Thresholds",
        "Recall and precision if a threshold on one score alone decided which pairs on record are flagged. Precision "
        f"leaves out {left_out} for other reasons than the edits. Runs and chapters are left out of both.",
        ("threshold", *(f"{what} by {score}" for score in SCORES for what in ("recall", "precision"))),
        [
            (
                f"{row['threshold']:.2f}",
                *(row[score][what]["share"] for score in SCORES for what in ("recall", "precision")),
            )
            for row in facts["thresholds"]
        ],
    )


def _make_false_pairs_table(pairs: Sequence[Facts]) -> Table:
    def story(pair: Facts, side: str) -> str:
        return f"{pair[side]}, {pair[f'edit_{side}']}" if pair[f"edit_{side}"] else str(pair[side])

    return Table(
        "False flags, those with the least in common first",
        "",
        ("language", "kind", "story", "match", "Jaccard", "containment"),
        [
            (pair["language"], pair["kind"], story(pair, "a"), story(pair, "b"), pair["jaccard"], pair["containment"])
            for pair in pairs[:SHOWN_PAIRS]
        ],
    )
