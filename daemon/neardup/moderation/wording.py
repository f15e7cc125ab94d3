"""The findings in words: the evidence for a pair, the similarity of a story, the order of publication, and marks.

Pages, exports and commands say the same of the same facts.  What is said of an order of publication is what
`core.publication_order` decides, and no word of an order is said where the order is not known.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from neardup.core.publication_order import Dates, Side, find_earlier, find_order
from neardup.core.verify.clusters import Cluster
from neardup.core.verify.tiers import EXACT, find_tier
from neardup.ledger.authors import History
from neardup.ledger.complaints import DISMISSED, STORY_REMOVED, UPHELD, Step
from neardup.ledger.serials import SerialMatch
from neardup.ledger.similarities import Similarity, Source
from neardup.moderation.interface import gettext, ngettext, number, translate_later
from neardup.query.compare import Evidence, StoryFacts
from neardup.query.similarity import SimilarityReport
from neardup.records import (
    PERMITTED,
    Mark,
    MarkReason,
    Verdict,
    format_percent,
    format_time,
    is_work,
    parse_milliseconds,
    show_id,
)

VERDICT_NAMES = {
    Verdict.PLAGIARISM: translate_later("plagiarism"),
    Verdict.REPOST: translate_later("author’s own repost"),
    Verdict.QUOTATION: translate_later("quotation"),
    Verdict.TEMPLATE: translate_later("template"),
    Verdict.NOT_SIMILAR: translate_later("not similar"),
    Verdict.UNSURE: translate_later("unsure"),
    Verdict.REOPENED: translate_later("reopened"),
}
STATUS_NAMES: dict[str, str] = {
    "open": translate_later("open"),
    "withdrawn": translate_later("withdrawn"),
    PERMITTED: translate_later("permitted"),
    **{verdict.value: name for verdict, name in VERDICT_NAMES.items()},
}
COPIED = {"open", Verdict.PLAGIARISM, Verdict.QUOTATION}  # the statuses that count in the view `sources`
SAME_AUTHOR = translate_later("The same author wrote every story of this case")
NOTHING_COPIED = translate_later("No part of this story is known to be copied from a story by others")
USE_PERMITTED = translate_later("What this story has in common with others is permitted")
SHARE_UNKNOWN = translate_later("How much of this story stands in other stories is not known")
SHOWN_RARE_WORDS = 20
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
UNITS = {  # of a plural
    translate_later("%(n)s years"): 365 * DAY,
    translate_later("%(n)s months"): 30 * DAY,
    translate_later("%(n)s days"): DAY,
    translate_later("%(n)s hours"): timedelta(hours=1),
    translate_later("%(n)s minutes"): timedelta(minutes=1),
    translate_later("%(n)s seconds"): SECOND,
}
LISTING, OWN_CLOCK = translate_later("listing"), translate_later("neardup’s clock")
MARK_NAMES = {
    MarkReason.MISLABELLED: translate_later("written in another script"),
    MarkReason.TRUNCATED: translate_later("read in part"),
    MarkReason.HIDDEN: translate_later("hidden text"),
    MarkReason.LOOK_ALIKES: translate_later("look-alike or unseen letters"),
    MarkReason.CONTROLS: translate_later("control characters"),
    MarkReason.EMPTY: translate_later("page without text"),
    MarkReason.NOT_TEXT: translate_later("page that is no text"),
    MarkReason.OVER_BUDGET: translate_later("page that takes too long to read"),
}

OUTCOME_NAMES = {
    UPHELD: translate_later("upheld"),
    DISMISSED: translate_later("dismissed"),
    STORY_REMOVED: translate_later("the story is no longer on record"),
}
STEP_NAMES = {
    Step.RECEIVED: translate_later("received"),
    Step.ACKNOWLEDGED: translate_later("acknowledged"),
    Step.EVIDENCE_MADE: translate_later("compared"),
    Step.EVIDENCE_FAILED: translate_later("not compared"),
    Step.AUTHOR_ASKED: translate_later("author asked"),
    Step.AUTHOR_ANSWERED: translate_later("answer of the author"),
    Step.COMPLAINANT_ANSWERED: translate_later("answer of the complainant"),
    Step.DECIDED: translate_later("decided by a verdict"),
    Step.CLOSED: translate_later("closed"),
    Step.REOPENED: translate_later("opened again"),
    Step.FORGOTTEN: translate_later("complainant forgotten"),
}


def name_verdict(verdict: Verdict) -> str:
    """What moderators call a verdict."""
    return gettext(VERDICT_NAMES[verdict])


def name_status(status: str) -> str:
    """What moderators call the status of a flag: a verdict, open, permitted, or withdrawn."""
    return gettext(STATUS_NAMES[status])


def counted_pairs(n: int) -> str:
    return ngettext("%(n)s pair", "%(n)s pairs", n, n=number(n))


def counted_stories(n: int) -> str:
    return ngettext("%(n)s story", "%(n)s stories", n, n=number(n))


def counted_cases(n: int) -> str:
    return ngettext("%(n)s case", "%(n)s cases", n, n=number(n))


def name_kind(facts: Evidence) -> str:
    """The label of the pair's kind."""
    if facts.kind is None:
        return gettext("Not flagged") if facts.share_a is None else gettext("Not a copy by the configured thresholds")
    return gettext(find_tier(facts.kind).label)


def describe_signals(row: Mapping[str, Any]) -> str:
    """The signals that decided the kind of a flag (a row of the view `pairs`), in words."""
    containments = row["containment"], row["matched_containment"]
    signals = {
        "hamming": row["hamming"],
        "jaccard": row["jaccard"],
        "containment": max(containments) if None not in containments else None,
        "longest_run_words": row["longest_run_words"],
    } | json.loads(row["signals"] or "{}")
    shown = {name: format_percent(value) if isinstance(value, float) else value for name, value in signals.items()}
    return gettext(find_tier(row["kind"]).evidence).format_map(shown)


def describe_overlap(facts: Evidence) -> str:
    """How much of each story is also in the other."""
    if facts.kind == EXACT:
        return gettext("Every word of each story is also in the other")
    if facts.share_a is not None and facts.share_b is not None:
        a, b = format_percent(facts.share_a), format_percent(facts.share_b)
        return gettext("%(a)s of A is also in B; %(b)s of B is also in A", a=a, b=b)
    if facts.containment is not None and facts.matched_containment is not None:
        a, b = format_percent(facts.containment), format_percent(facts.matched_containment)
        if facts.estimated:
            return gettext("About %(a)s of A's word pairs are also in B; %(b)s of B's in A", a=a, b=b)
        return gettext("%(a)s of A's word pairs are also in B; %(b)s of B's in A", a=a, b=b)
    return gettext("The overlap is not known")


def describe_share(facts: Evidence, side: Side) -> str | None:
    """How much of this story is also in the other; None if that is not known."""
    share = facts.shares[side]
    return (
        None if share is None else gettext("%(share)s of this story is also in the other", share=format_percent(share))
    )


def list_findings(facts: Evidence) -> list[str]:
    """Further findings, one sentence each."""
    return [_join_sentence(words) for words in _list_findings(facts)]


def list_warnings(facts: Evidence) -> list[str]:
    """Reasons not to trust the other figures fully, one sentence each."""
    return [_join_sentence(words) for words in _list_warnings(facts)]


def _join_sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def describe_similarity(found: Similarity) -> str:
    """How much of a story stands in its sources."""
    if not found.sources:
        return gettext(NOTHING_COPIED)
    if not found.copied_words:
        return gettext(SHARE_UNKNOWN)
    return describe_share_in_others(found.similarity, are_earlier=not count_unordered_sources(found))


def describe_share_in_others(similarity: float, *, are_earlier: bool) -> str:
    """How much of a story stands in its sources, which are called earlier only if all of them are known to be."""
    share = format_percent(similarity)
    if are_earlier:
        return gettext("%(share)s of this story stands in earlier stories by others", share=share)
    return gettext("%(share)s of this story stands in stories by others", share=share)


def describe_rest(found: Similarity, left_out: int) -> str:
    """How much of a story stands in its sources without those that are left out, of which there are some."""
    return ngettext(
        "%(share)s of this story stands in stories by others without the source that is left out",
        "%(share)s of this story stands in stories by others without the %(n)s sources that are left out",
        left_out,
        share=format_percent(found.similarity),
        n=number(left_out),
    )


def describe_serial_match(match: SerialMatch) -> str:
    """Which chapters of one serial are which of another, the best chain first."""
    parts = (
        gettext(
            "chapters %(first)s to %(last)s are chapters %(source_first)s to %(source_last)s of the source",
            first=number(ranges.second[0]),
            last=number(ranges.second[1]),
            source_first=number(ranges.first[0]),
            source_last=number(ranges.first[1]),
        )
        for ranges in match.ranges
    )
    return gettext("A serial follows another: %(parts)s", parts="; ".join(parts))


def describe_case(row: Mapping[str, Any]) -> str:
    """How much of the lead of a case (a row of `ledger.case_queue.select`) stands in its sources."""
    if row["sources"]:
        return describe_share_in_others(row["similarity"], are_earlier=bool(row["is_ordered"]))
    if row["same_author"]:
        return gettext(SAME_AUTHOR)
    if PERMITTED in row["statuses"].strip(",").split(","):
        return gettext(USE_PERMITTED)
    if COPIED.isdisjoint(row["statuses"].strip(",").split(",")):
        return gettext(NOTHING_COPIED)
    return gettext(SHARE_UNKNOWN)


def list_similarity_findings(found: Similarity) -> list[str]:
    if not found.sources:
        return []
    from_sources = ngettext(
        "%(copied)s of %(words)s words, from %(n)s source",
        "%(copied)s of %(words)s words, from %(n)s sources",
        len(found.sources),
        copied=number(found.copied_words),
        words=number(found.words),
        n=number(len(found.sources)),
    )
    findings = [from_sources]
    if unknown_order := count_unordered_sources(found):
        before = ngettext(
            "It is not known whether %(n)s of the sources was published before this story",
            "It is not known whether %(n)s of the sources were published before this story",
            unknown_order,
            n=number(unknown_order),
        )
        findings.append(before)
    unknown = sum(source.author_id is None for source in found.sources)
    if found.author_id is None:
        findings.append(gettext("The author of this story is not known"))
    elif unknown:
        n = number(unknown)
        findings.append(gettext("It is not known whether the same author wrote %(n)s of the sources", n=n))
    return findings


def describe_history(found: History) -> str:
    """How often an author's stories copy, in one line."""
    plagiarism = gettext("no verdict of plagiarism")
    if n := found.plagiarism:
        plagiarism = ngettext(
            "%(n)s story with the verdict plagiarism", "%(n)s stories with the verdict plagiarism", n, n=number(n)
        )
    line = gettext("%(plagiarism)s, %(open)s open", plagiarism=plagiarism, open=number(found.open))
    if n := found.unordered:
        line += "; " + ngettext("%(n)s pair of unknown order", "%(n)s pairs of unknown order", n, n=number(n))
    return line


def _list_findings(facts: Evidence) -> Iterator[str]:
    yield describe_pair_order(facts)
    if facts.same_author is None:
        yield gettext("it is not known whether the same author wrote both")
    elif facts.same_author:
        yield gettext("the same author wrote both")
    else:
        yield gettext("two different authors wrote them")
    if facts.longest_run_words:
        yield gettext("the longest shared run has %(n)s words", n=number(facts.longest_run_words))
    if facts.rare_words:
        yield gettext("rare words in the same order: %(words)s", words=name_rare_words(facts))
    if facts.common_words:
        n = number(facts.common_words)
        yield gettext("%(n)s more words are in common passages, which many stories share", n=n)


def name_rare_words(facts: Evidence) -> str:
    """The rare words of a rewriting on one line, in the order of A; of many, those at its start."""
    more = len(facts.rare_words) - SHOWN_RARE_WORDS
    shown = ", ".join(facts.rare_words[:SHOWN_RARE_WORDS])
    return shown if more <= 0 else f"{shown} {gettext('and %(n)s more', n=number(more))}"


def _list_warnings(facts: Evidence) -> Iterator[str]:
    if facts.estimated:
        yield gettext("the scores are estimates: a text was unavailable when they were computed")
    for side, about in zip("AB", facts.sides.values(), strict=True):
        if about.changed:
            yield gettext(
                "the page of %(side)s has changed since it was fingerprinted: this is its current text", side=side
            )
        if about.gone:
            yield gettext("the text of %(side)s is no longer available (%(why)s)", side=side, why=about.gone)


def list_scores(facts: Evidence) -> list[tuple[str, str]]:
    """The known scores, as (name, value)."""
    named: list[tuple[str, str]] = []
    if facts.similarity is not None:
        named.append((gettext("Similarity"), format_percent(facts.similarity)))
    if facts.hamming is not None:
        named.append(("SimHash", gettext("%(n)s of 128 bits differ", n=facts.hamming)))
    if facts.jaccard is not None:
        named.append((gettext("Jaccard similarity"), f"{facts.jaccard:.2f}"))
    if facts.containment is not None:
        named.append((gettext("Containment, A in B"), f"{facts.containment:.2f}"))
        named.append((gettext("Containment, B in A"), f"{facts.matched_containment:.2f}"))
    if facts.copied_words is not None:
        named.append((gettext("Copied words"), number(facts.copied_words)))
    return named


# The order of publication.


def describe_duration(length: timedelta) -> str:
    """A duration in the largest unit of which it has at least two: 3 days, 36 hours."""
    for name, unit in UNITS.items():
        if length >= 2 * unit:
            return gettext(name, n=number(length // unit))
    return gettext("a second") if length >= SECOND else gettext("less than a second")


def read_dates(row: Mapping[str, Any], prefix: str = "", catalogue: str | None = None) -> Dates:
    """The dates in a row of the ledger, whose columns have this prefix."""
    return Dates(row[f"{prefix}published_at"], row[f"{prefix}updated_at"], row[f"{prefix}known_since"], catalogue)


def get_dates(about: StoryFacts) -> Dates:
    published, updated, known = map(parse_milliseconds, (about.published_at, about.updated_at, about.known_since))
    return Dates(published, updated, known, about.catalogue)


def list_dates(dates: Dates) -> list[tuple[str, str, str]]:
    """The known dates of a story: what happened, the time (RFC 3339), and who says so.

    An update is listed only if it came after the publication.
    """
    published, updated = dates.published, dates.updated
    shown = [
        (gettext("published"), published, LISTING),
        (
            gettext("updated"),
            updated if updated is not None and (published is None or updated > published) else None,
            LISTING,
        ),
        (gettext("known to neardup since"), dates.known_since, OWN_CLOCK),
    ]
    return [(what, time, gettext(source)) for what, at, source in shown if (time := format_time(at)) is not None]


def describe_pair_order(facts: Evidence) -> str:
    """Which of two stories, A and B, was published before the other, and by what."""
    return _order("A", "B", get_dates(facts.a), get_dates(facts.b))


def describe_row_order(row: Mapping[str, Any]) -> str:
    """Which story of a flag (a row of the view `pairs`) was published before the other, and by what."""
    first, second = (str(show_id(row[f"{side}_id"], row[f"{side}_name"])) for side in ("matched", "story"))
    return _order(first, second, read_dates(row, "matched_", row["catalogue"]), read_dates(row, "story_"))


def describe_source_order(found: Similarity, source: Source) -> str:
    """Whether a source was published before the story, and by what."""
    return _order(gettext("the source"), gettext("the story"), source.dates, found.dates)


def describe_top_source_order(row: Mapping[str, Any]) -> str:
    """Whether the largest source of a story was published before it, and by what; `row` is one of `copying_stories`."""
    first = str(show_id(row["top_source_id"], row["top_source_name"]))
    second = str(show_id(row["story_id"], row["name"]))
    source = read_dates(row, "top_source_", row["top_source_catalogue"])
    return _order(first, second, source, read_dates(row))


def _order(first: str, second: str, a: Dates, b: Dates) -> str:
    order = find_order(a, b)
    for name, dates in ((first, a), (second, b)):
        if dates.catalogue is not None:
            return gettext("%(work)s is a work of the catalogue %(catalogue)s", work=name, catalogue=dates.catalogue)
    if order.ahead is None:
        missing = [name for name, dates in ((first, a), (second, b)) if dates.published is None]
        if not missing:
            return gettext("the order of publication is not known: the listing gives both the same date")
        which = gettext("%(one)s and %(other)s", one=first, other=second) if len(missing) == 2 else missing[0]
        return gettext("the order of publication is not known: the listing has no date of %(which)s", which=which)
    before, after = (first, second) if order.earlier == "a" else (second, first)
    shown = {"before": before, "after": after, "ahead": describe_duration(timedelta(milliseconds=order.ahead))}
    if order.is_updated_since:
        return gettext(
            "%(before)s was published %(ahead)s before %(after)s, by the listing, and updated after %(after)s was"
            " published",
            **shown,
        )
    return gettext("%(before)s was published %(ahead)s before %(after)s, by the listing", **shown)


def name_sources(found: Similarity | SimilarityReport) -> str:
    """What the sources of a story are called: "earlier" only if all of them are known to be."""
    return "stories by others" if count_unordered_sources(found) else "earlier stories by others"


def count_unordered_sources(found: Similarity | SimilarityReport) -> int:
    """The number of sources of which it is not known that they were published before the story."""
    story = Dates(_parse_milliseconds(found.published_at))
    sources = [Dates(_parse_milliseconds(source.published_at), catalogue=source.catalogue) for source in found.sources]
    return sum(find_earlier(source, story) != "a" for source in sources)


def _parse_milliseconds(time: int | str | None) -> int | None:
    return parse_milliseconds(time) if isinstance(time, str) else time


def describe_cluster_order(cluster: Cluster) -> str:
    """In what order the stories of a cluster are listed, and which of them was published before all others."""
    if is_work(cluster.stories[0]):
        return gettext("Works of the reference come first, then the others in order of publication, by the listing.")
    if cluster.earliest is not None:
        return gettext("In order of publication, by the listing; the first is likely the original.")
    if not cluster.undated:
        return gettext(
            "In order of publication, by the listing. Several have the same date: the original is not known."
        )
    if cluster.undated == len(cluster.stories):
        return gettext(
            "In the order of their ids. The listing has no date of publication, so their order is not known."
        )
    return gettext(
        "The original is not known: %(undated)s of %(stories)s stories have no date of publication. The others precede"
        " them, in order of publication, by the listing.",
        undated=number(cluster.undated),
        stories=number(len(cluster.stories)),
    )


# Marks.


def name_mark(reason: str) -> str:
    """What moderators call a mark."""
    return gettext(MARK_NAMES[MarkReason(reason)])


def describe_mark(mark: Mark) -> str:
    """A mark, with the share that it is about."""
    share = mark.detail.replace(" ", "\N{NO-BREAK SPACE}") if mark.detail.endswith("%") else ""
    return f"{name_mark(mark.reason)} {share}".rstrip()


def counted_marked(n: int) -> str:
    return ngettext("%(n)s story with marks:", "%(n)s stories with marks:", n, n=number(n))


# Complaints.


def name_step(step: Step) -> str:
    return gettext(STEP_NAMES[step])


def name_outcome(outcome: str) -> str:
    """How a complaint was closed: a verdict, or what a moderator chose."""
    return gettext(OUTCOME_NAMES.get(outcome) or VERDICT_NAMES[Verdict(outcome)])


def describe_evidence(evidence: Mapping[str, Any] | None) -> str:
    """The evidence of a complaint in one line: the kind and the similarity of a copy, or that there is none."""
    if evidence is None:
        return gettext("not compared")
    if evidence["kind"] is None:
        return gettext("no copy by the configured thresholds")
    kind, similarity = gettext(find_tier(evidence["kind"]).label), format_percent(evidence["similarity"])
    return gettext("%(kind)s, similarity %(similarity)s", kind=kind, similarity=similarity)


def list_evidence(evidence: Mapping[str, Any]) -> list[str]:
    """The evidence of a complaint, one sentence each: with what the story was compared, what was found, and how."""
    compared = {
        "story": gettext("Compared with the original, word by word"),
        "text": gettext("Compared with the text of the original, word by word"),
        "all": gettext("Compared with all stories on record: %(n)s", n=number(evidence["compared"])),
    }
    sentences = [compared[evidence["compared_with"]], _join_sentence(describe_evidence(evidence))]
    sentences += (_join_sentence(_describe_match(match)) for match in evidence["matches"])
    if evidence["near_miss"] is not None:
        sentences.append(gettext("The nearest: %(match)s", match=_describe_match(evidence["near_miss"])))
    limits = evidence["thresholds"]
    shares = {name: format_percent(limits[name]) for name in ("jaccard", "containment", "rare_share")}
    thresholds = gettext(
        "Thresholds: Hamming distance %(hamming)s, Jaccard similarity %(jaccard)s, containment %(containment)s, copied"
        " words %(passage_words)s, rare words %(rare_share)s",
        **limits | shares,
    )
    return [*sentences, thresholds, *map(_join_sentence, evidence["reasons"])]


def _describe_match(match: Mapping[str, Any]) -> str:
    """A story that was compared, with the figures that are known."""
    story = gettext("the text") if match["story_id"] is None else gettext("story %(id)s", id=match["story_id"])
    figures = [gettext("similarity %(n)s", n=format_percent(match["similarity"]))]
    if match["jaccard"]:
        figures.append(gettext("Jaccard similarity %(n)s", n=format_percent(match["jaccard"])))
    if match["longest_run_words"]:
        figures.append(gettext("longest shared run %(n)s words", n=match["longest_run_words"]))
    if match["copied_words"]:
        figures.append(gettext("%(n)s words copied", n=number(round(match["copied_words"]))))
    return f"{story}: {', '.join(figures)}"
