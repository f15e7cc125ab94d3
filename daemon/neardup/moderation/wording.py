"""The evidence for a pair (`query.evidence`) and the similarity of a story in words, for the pages of moderators."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from neardup.core.verify.clusters import Cluster
from neardup.core.verify.tiers import tier_of
from neardup.ledger.similarities import Similarity
from neardup.query.evidence import Evidence, Side

DAY = timedelta(days=1)
UNITS = {
    "years": 365 * DAY,
    "months": 30 * DAY,
    "days": DAY,
    "hours": timedelta(hours=1),
    "minutes": timedelta(minutes=1),
    "seconds": timedelta(seconds=1),
}


def percent(share: float) -> str:
    """A share, 0 to 1, in percent; only exactly all of it is 100 %, and only exactly nothing 0 %."""
    return f"{min(max(round(100 * share), 1), 99) if 0 < share < 1 else round(100 * share)} %"


def duration(length: timedelta) -> str:
    """A duration in the largest unit of which it has at least two: 3 days, 36 hours."""
    for name, unit in UNITS.items():
        if length >= 2 * unit:
            return f"{length // unit:,} {name}"
    return "a second" if length >= UNITS["seconds"] else "less than a second"


def kind(facts: Evidence) -> str:
    """The label of the pair's kind."""
    if facts.kind is None:
        return "Not flagged" if facts.share_a is None else "Not a copy by the configured thresholds"
    return tier_of(facts.kind).label


def evidence(row: Mapping[str, Any]) -> str:
    """The signals that decided the kind of a flag (a row of the view `pairs`), in words."""
    containments = row["containment"], row["matched_containment"]
    signals = {
        "hamming": row["hamming"],
        "jaccard": row["jaccard"],
        "containment": max(containments) if None not in containments else None,
        "longest_run_words": row["longest_run_words"],
    } | json.loads(row["signals"] or "{}")
    shown = {name: percent(value) if isinstance(value, float) else value for name, value in signals.items()}
    return tier_of(row["kind"]).evidence.format_map(shown)


def headline(facts: Evidence) -> str:
    """How much of each story is also in the other."""
    if facts.share_a is not None and facts.share_b is not None:
        if facts.share_a == facts.share_b == 1:
            return "Every word of each story is also in the other"
        return f"{percent(facts.share_a)} of A is also in B; {percent(facts.share_b)} of B is also in A"
    if facts.containment is not None and facts.matched_containment is not None:
        a, b = percent(facts.containment), percent(facts.matched_containment)
        return f"{'About ' if facts.estimated else ''}{a} of A's word pairs are also in B; {b} of B's in A"
    return "The overlap is not known"


def share(facts: Evidence, side: Side) -> str | None:
    """How much of this story is also in the other; None if that is not known."""
    part = facts.shares[side]
    return None if part is None else f"{percent(part)} of this story is also in the other"


def findings(facts: Evidence) -> list[str]:
    """Further findings, one sentence each."""
    return [_sentence(words) for words in _findings(facts)]


def warnings(facts: Evidence) -> list[str]:
    """Reasons not to trust the other figures fully, one sentence each."""
    return [_sentence(words) for words in _warnings(facts)]


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def publication_order(facts: Evidence) -> str:
    """Which of two stories was published first, or that it is not known."""
    a, b = facts.a.published_at, facts.b.published_at
    if a is None or b is None:
        return "it is not known which was published first"
    if facts.earlier is None:
        return "both were published at the same time, so it is not known which was first"
    later = "b" if facts.earlier == "a" else "a"
    length = duration(abs(datetime.fromisoformat(b) - datetime.fromisoformat(a)))
    return f"{facts.earlier.upper()} was published {length} before {later.upper()}"


def cluster_order(cluster: Cluster) -> str:
    """In what order the stories of a cluster are listed, and which of them was published first."""
    if cluster.earliest is not None:
        return "In order of publication; the first is likely the original."
    if not cluster.undated:
        return "In order of publication. Several were published first, at the same time: the original is not known."
    if cluster.undated == len(cluster.stories):
        return "In the order of their ids. No date of publication is known, so the original is not known."
    return (
        f"The original is not known: {cluster.undated:,} of {len(cluster.stories):,} stories have no date of"
        " publication. Those with a date come first, in order of publication."
    )


def similarity_headline(found: Similarity) -> str:
    """How much of a story stands in its sources."""
    if not found.sources:
        return "No part of this story is known to stand in an earlier story by others"
    if not found.copied_words:
        return "How much of this story stands in other stories is not known"
    others = "stories by others" if _of_unknown_order(found) else "earlier stories by others"
    return f"{percent(found.similarity)} of this story stands in {others}"


def similarity_findings(found: Similarity) -> list[str]:
    """Further findings on a story and its sources, one sentence each."""
    if not found.sources:
        return []
    sources = "1 source" if len(found.sources) == 1 else f"{len(found.sources):,} sources"
    findings = [f"{found.copied_words:,} of {found.words:,} words, from {sources}"]
    if undated := _of_unknown_order(found):
        findings.append(f"It is not known whether {undated:,} of the sources {_was(undated)} published earlier")
    unknown = sum(source.author_id is None for source in found.sources)
    if found.author_id is None:
        findings.append("The author of this story is not known")
    elif unknown:
        findings.append(f"It is not known whether the same author wrote {unknown:,} of the sources")
    return findings


def _of_unknown_order(found: Similarity) -> int:
    """The number of sources of which it is not known that they were published before the story."""
    times = [source.published_at for source in found.sources]
    return sum(found.published_at is None or time is None or time == found.published_at for time in times)


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _findings(facts: Evidence) -> Iterator[str]:
    yield publication_order(facts)
    if facts.same_author is None:
        yield "it is not known whether the same author wrote both"
    else:
        yield "the same author wrote both" if facts.same_author else "two different authors wrote them"
    if facts.longest_run_words:
        yield f"the longest shared run has {facts.longest_run_words:,} words"
    if facts.common_words:
        yield f"{facts.common_words:,} more words are in common passages, which many stories share"


def _warnings(facts: Evidence) -> Iterator[str]:
    if facts.estimated:
        yield "the scores are estimates: a text was unavailable when they were computed"
    for side, about in facts.sides.items():
        if about.changed:
            yield f"the page of {side.upper()} has changed since it was fingerprinted: this is its current text"
        if about.gone:
            yield f"the text of {side.upper()} is no longer available ({about.gone})"


def scores(facts: Evidence) -> list[tuple[str, str]]:
    """The known scores, as (name, value)."""
    named: list[tuple[str, str]] = []
    if facts.hamming is not None:
        named.append(("SimHash", f"{facts.hamming} of 128 bits differ"))
    if facts.jaccard is not None:
        named.append(("Jaccard similarity", f"{facts.jaccard:.2f}"))
    if facts.containment is not None:
        named.append(("Containment, A in B", f"{facts.containment:.2f}"))
        named.append(("Containment, B in A", f"{facts.matched_containment:.2f}"))
    if facts.copied_words is not None:
        named.append(("Copied words", f"{facts.copied_words:,}"))
    return named
