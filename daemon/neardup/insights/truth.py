"""Scores the flags on record by what people say of them: labelled pairs, and the verdicts of moderators."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from neardup.core.intervals import estimate_share
from neardup.core.verify.tiers import PARTIAL, SIMILAR, list_kinds
from neardup.errors import Misuse
from neardup.insights.tables import ALL, SHOWN_PAIRS, Facts, Table, format_interval
from neardup.ledger import open_snapshot, story_rows, verdicts
from neardup.records import DECIDING, ShownId
from neardup.source.parse import parse_id

MUST_BE_FOUND_FROM = 0.55  # a pair with at least this Jaccard similarity or containment must be found
FALSE_BELOW = 0.45  # a flagged pair with both scores below this is false; between the two, either result is right

Pair = tuple[int, int]


class Label(Struct, frozen=True):
    """The label of a pair, `listed` by its ids, that of the lower integer first; an unknown score is None."""

    listed: tuple[ShownId, ShownId]
    kind: str | None
    language: str | None
    jaccard: float | None
    containment: float | None

    @property
    def score(self) -> float | None:
        return max((score for score in (self.jaccard, self.containment) if score is not None), default=None)

    @property
    def wanted(self) -> bool:
        return self.score is None or self.score >= MUST_BE_FOUND_FROM

    @property
    def expected_kind(self) -> str:
        """The labelled kind, or else the kind that the scores imply."""
        if self.kind is not None or self.score is None:
            return self.kind or "unlabelled"
        return SIMILAR if (self.jaccard or 0) >= MUST_BE_FOUND_FROM else PARTIAL


class Flag(Struct, frozen=True):
    """A flag on record."""

    kind: str
    language: str
    jaccard: float | None
    containment: float | None

    @property
    def score(self) -> float:
        """The larger score; 1 for a pair without scores, which was flagged by its hashes."""
        return max((x for x in (self.jaccard, self.containment) if x is not None), default=1.0)


def read_labels(path: Path) -> dict[Pair, Label]:
    """Read the labels by pair, the smaller id first, from JSON lines with a, b and optionally kind, lang, j, c.

    An id is an integer or a name, as in the listing.

    Raises Misuse, which names the line that is wrong.
    """
    labels: dict[Pair, Label] = {}
    try:
        with path.open("rb") as file:
            for n, line in enumerate(file, 1):
                if line.strip():
                    try:
                        pair, label = _parse_label(json.loads(line))
                    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
                        raise Misuse(f'{path}, line {n}: no JSON such as {{"a": 1, "b": 2}}') from None
                    except ValueError as error:
                        raise Misuse(f"{path}, line {n}: {error}") from None
                    labels[pair] = label
    except OSError as error:
        raise Misuse(f"cannot read the labelled pairs {path}: {error.strerror}") from error
    if not labels:
        raise Misuse(f"{path} holds no pairs")
    return labels


def _parse_label(line: Any) -> tuple[Pair, Label]:
    """Raises ValueError."""
    if not isinstance(line, dict):
        raise ValueError("not an object")
    listed = sorted((_parse_id(line, name) for name in ("a", "b")), key=lambda shown: parse_id(str(shown)))
    a, b = (parse_id(str(shown)) for shown in listed)
    if a == b:
        raise ValueError(f"a and b are the same story, {listed[0]}")
    texts = [line.get(name) for name in ("kind", "lang")]
    if not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError("kind and lang are strings")
    return (a, b), Label((listed[0], listed[1]), texts[0], texts[1], _score(line, "j"), _score(line, "c"))


def _parse_id(line: Mapping[str, Any], name: str) -> ShownId:
    value = line.get(name)
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}, neither an integer nor a name" if name in line else f"no {name}")
    return value


def _score(line: Mapping[str, Any], name: str) -> float | None:
    value = line.get(name)
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1):
        raise ValueError(f"{name} is {value!r}, not a number from 0 to 1")
    return None if value is None else float(value)


def score_flags(db: sqlite3.Connection, labels: Mapping[Pair, Label]) -> dict[str, Any]:
    """Score the flags that were not withdrawn: recall, precision, misses and false flags, the worst first.

    A flag is false if its pair is not labelled, or is labelled with scores that are both below FALSE_BELOW.
    """
    flags = dict(_read_flags(db))
    languages = dict(db.execute("SELECT id, language FROM described"))
    wanted = {pair: label for pair, label in labels.items() if label.wanted}
    groups: Counter[tuple[str, str]] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    flagged_as: Counter[tuple[str, str, str]] = Counter()
    for pair, label in wanted.items():
        group = languages.get(pair[0]) or languages.get(pair[1]) or label.language or "unknown", label.expected_kind
        groups[group] += 1
        if pair in flags:
            found[group] += 1
            flagged_as[*group, flags[pair].kind] += 1
    false = {pair: flag for pair, flag in flags.items() if _is_false(labels.get(pair))}
    shown = story_rows.read_shown_ids(db, chain.from_iterable(false))
    by_language = Counter(flag.language for flag in flags.values())
    false_by_language = Counter(flag.language for flag in false.values())
    return {
        "labelled": len(labels),
        "wanted": len(wanted),
        "flagged": len(flags),
        "recall": [
            {
                "language": language,
                "kind": kind,
                "flagged_as": {k: flagged_as[language, kind, k] for k in list_kinds() if flagged_as[language, kind, k]},
                **asdict(estimate_share(found[language, kind], n)),
            }
            for (language, kind), n in sorted(groups.items())
        ],
        "recall_of_all": asdict(estimate_share(found.total(), groups.total())),
        "precision": [
            {"language": language, **asdict(estimate_share(n - false_by_language[language], n))}
            for language, n in sorted(by_language.items())
        ],
        "precision_of_all": asdict(estimate_share(len(flags) - len(false), len(flags))),
        "verdicts": measure_precision(db),
        "misses": [_describe_miss(pair, wanted[pair], languages) for pair in _choose_worst(wanted, flags)],
        "false_flags": [
            _describe_false_flag((shown[pair[0]], shown[pair[1]]), flag, labels.get(pair))
            for pair, flag in sorted(false.items(), key=lambda item: (_score_of(item[1], labels.get(item[0])), item[0]))
        ],
    }


def _read_flags(db: sqlite3.Connection) -> Iterator[tuple[Pair, Flag]]:
    rows = db.execute(
        "SELECT f.a, f.b, f.kind, s.language, f.jaccard, max(f.containment_a, f.containment_b) FROM flags f"
        " JOIN described s ON s.id = f.a WHERE f.status <> 'withdrawn'"
    )
    for a, b, *rest in rows:
        yield (a, b), Flag(*rest)


def _is_false(label: Label | None) -> bool:
    return label is None or (label.score is not None and label.score < FALSE_BELOW)


def _choose_worst(wanted: Mapping[Pair, Label], flags: Mapping[Pair, Flag]) -> list[Pair]:
    """The misses, the highest score first; those without scores by the severity of their kind."""
    severity = {kind: n for n, kind in enumerate(list_kinds())}
    missed = [pair for pair in wanted if pair not in flags]
    return sorted(
        missed,
        key=lambda pair: (-(wanted[pair].score or 0), severity.get(wanted[pair].kind or "", len(severity)), pair),
    )


def _score_of(flag: Flag, label: Label | None) -> float:
    """The score of the label, which is independent of neardup, or else that of the flag."""
    return flag.score if label is None or label.score is None else label.score


def _describe_miss(pair: Pair, label: Label, languages: Mapping[int, str]) -> dict[str, Any]:
    return {
        "a": label.listed[0],
        "b": label.listed[1],
        "language": languages.get(pair[0]) or languages.get(pair[1]) or label.language,
        "kind": label.expected_kind,
        "j": label.jaccard,
        "c": label.containment,
        "not_in_ledger": [shown for shown, story in zip(label.listed, pair, strict=True) if story not in languages],
    }


def _describe_false_flag(pair: tuple[ShownId, ShownId], flag: Flag, label: Label | None) -> dict[str, Any]:
    return {
        "a": pair[0],
        "b": pair[1],
        "language": flag.language,
        "kind": flag.kind,
        "jaccard": flag.jaccard,
        "containment": flag.containment,
        "labelled": label is not None,
        "j": label and label.jaccard,
        "c": label and label.containment,
    }


def make_label_tables(facts: Facts) -> list[Table]:
    """Recall, precision by the labels and by the verdicts, misses and false flags."""
    return [
        Table(
            "Recall",
            "The share of flagged pairs among the labelled pairs that must be found; a flag of any kind counts.",
            ("language", "labelled", "n", "found", "recall", "95 % interval", "flagged as"),
            [
                (
                    row["language"],
                    row["kind"],
                    str(row["n"]),
                    str(row["found"]),
                    row["share"],
                    format_interval(row),
                    ", ".join(f"{kind} {n:,}" for kind, n in row["flagged_as"].items()),
                )
                for row in (*facts["recall"], {"language": ALL, "kind": "", "flagged_as": {}, **facts["recall_of_all"]})
            ],
        ),
        Table(
            "Precision",
            "The share of the flagged pairs that are right: labelled, with a score of at least 0.45 or without scores.",
            ("language", "flagged", "right", "precision", "95 % interval"),
            [
                (row["language"], str(row["n"]), str(row["found"]), row["share"], format_interval(row))
                for row in (*facts["precision"], {"language": ALL, **facts["precision_of_all"]})
            ],
        ),
        *make_precision_tables(facts["verdicts"]),
        _make_pairs_table("Misses", facts["misses"], ("a", "b", "language", "kind", "j", "c", "not_in_ledger")),
        _make_pairs_table(
            "False flags",
            facts["false_flags"],
            ("a", "b", "language", "kind", "jaccard", "containment", "labelled", "j", "c"),
        ),
    ]


def _make_pairs_table(title: str, pairs: Sequence[Facts], columns: Sequence[str]) -> Table:
    return Table(
        f"{title} ({len(pairs):,}), worst first",
        "" if len(pairs) <= SHOWN_PAIRS else f"The first {SHOWN_PAIRS}; --json prints all.",
        columns,
        [(str(pair["a"]), str(pair["b"]), *(pair[column] for column in columns[2:])) for pair in pairs[:SHOWN_PAIRS]],
    )


# Precision by the verdicts of moderators


def measure_precision_on_record(path: Path) -> list[Facts]:
    """Return `measure_precision` of a ledger; empty if there is no ledger yet.  Raises as `read` does."""
    if not path.exists():
        return []
    with open_snapshot(path) as db:
        return measure_precision(db)


def measure_precision(db: sqlite3.Connection) -> list[Facts]:
    """Precision by language and kind, with its interval and the number of each verdict; the last row is the total."""
    rows = verdicts.count_verdicts(db)
    if not rows:
        return []
    total = {name: sum(row[name] for row in rows) for name in ("judged", *DECIDING)}
    return [_add_precision(row) for row in (*rows, {"language": ALL, "kind": ALL, **total})]


def _add_precision(row: Facts) -> Facts:
    right = asdict(estimate_share(row["judged"] - row["not_similar"], row["judged"]))
    return {
        **{name: row[name] for name in ("language", "kind", "judged", *DECIDING)},
        "precision": right["share"],
        **{end: right[end] for end in ("low", "high")},
    }


def make_precision_tables(facts: Sequence[Facts]) -> list[Table]:
    """One table, or none if there are no verdicts."""
    if not facts:
        return []
    named = ("language", "kind", "judged", "precision")
    return [
        Table(
            "Precision by moderators' verdicts",
            "The share of the decided flags that were not decided to be not similar. Moderators decide the most severe "
            "flags first, so these are not a random sample.",
            (
                "language",
                "kind",
                "decided",
                "precision",
                "95 % interval",
                *(word.replace("_", " ") for word in DECIDING),
            ),
            [
                (*(row[name] for name in named), format_interval(row), *(row[verdict] for verdict in DECIDING))
                for row in facts
            ],
        )
    ]
