"""The evidence for a pair (`query.evidence`) and the similarity of a story in words, for the pages of moderators."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from neardup.core.publication_order import Side
from neardup.core.verify.tiers import tier_of
from neardup.ledger.authors import History
from neardup.ledger.similarities import Similarity
from neardup.moderation.interface import gettext, marked, ngettext, number
from neardup.moderation.publication_wording import of_unknown_order, pair_order
from neardup.query.evidence import Evidence
from neardup.records import Verdict

VERDICT_NAMES = {
    Verdict.PLAGIARISM: marked("plagiarism"),
    Verdict.REPOST: marked("author’s own repost"),
    Verdict.QUOTATION: marked("quotation"),
    Verdict.TEMPLATE: marked("template"),
    Verdict.NOT_SIMILAR: marked("not similar"),
    Verdict.UNSURE: marked("unsure"),
    Verdict.REOPENED: marked("reopened"),
}
COPIED = {"open", Verdict.PLAGIARISM, Verdict.QUOTATION}  # the statuses that count in the view `sources`
SAME_AUTHOR = marked("The same author wrote every story of this case")
NOTHING_COPIED = marked("No part of this story is known to be copied from a story by others")
SHARE_UNKNOWN = marked("How much of this story stands in other stories is not known")


def percent(share: float) -> str:
    """A share, 0 to 1, in percent; only exactly all of it is 100 %, and only exactly nothing 0 %."""
    return f"{min(max(round(100 * share), 1), 99) if 0 < share < 1 else round(100 * share)} %"


def verdict_name(verdict: Verdict) -> str:
    """What moderators call a verdict."""
    return gettext(VERDICT_NAMES[verdict])


def status_name(status: str) -> str:
    """What moderators call the status of a flag: a verdict, open, or withdrawn."""
    return {"open": gettext("open"), "withdrawn": gettext("withdrawn")}.get(status) or verdict_name(Verdict(status))


def counted_pairs(n: int) -> str:
    return ngettext("%(n)s pair", "%(n)s pairs", n) % {"n": number(n)}


def counted_stories(n: int) -> str:
    return ngettext("%(n)s story", "%(n)s stories", n) % {"n": number(n)}


def counted_cases(n: int) -> str:
    return ngettext("%(n)s case", "%(n)s cases", n) % {"n": number(n)}


def kind(facts: Evidence) -> str:
    """The label of the pair's kind."""
    if facts.kind is None:
        return gettext("Not flagged") if facts.share_a is None else gettext("Not a copy by the configured thresholds")
    return gettext(tier_of(facts.kind).label)


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
    return gettext(tier_of(row["kind"]).evidence).format_map(shown)


def headline(facts: Evidence) -> str:
    """How much of each story is also in the other."""
    if facts.share_a is not None and facts.share_b is not None:
        if facts.share_a == facts.share_b == 1:
            return gettext("Every word of each story is also in the other")
        shares = {"a": percent(facts.share_a), "b": percent(facts.share_b)}
        return gettext("%(a)s of A is also in B; %(b)s of B is also in A") % shares
    if facts.containment is not None and facts.matched_containment is not None:
        shares = {"a": percent(facts.containment), "b": percent(facts.matched_containment)}
        if facts.estimated:
            return gettext("About %(a)s of A's word pairs are also in B; %(b)s of B's in A") % shares
        return gettext("%(a)s of A's word pairs are also in B; %(b)s of B's in A") % shares
    return gettext("The overlap is not known")


def share(facts: Evidence, side: Side) -> str | None:
    """How much of this story is also in the other; None if that is not known."""
    part = facts.shares[side]
    return None if part is None else gettext("%(share)s of this story is also in the other") % {"share": percent(part)}


def findings(facts: Evidence) -> list[str]:
    """Further findings, one sentence each."""
    return [_sentence(words) for words in _findings(facts)]


def warnings(facts: Evidence) -> list[str]:
    """Reasons not to trust the other figures fully, one sentence each."""
    return [_sentence(words) for words in _warnings(facts)]


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def similarity_headline(found: Similarity) -> str:
    """How much of a story stands in its sources."""
    if not found.sources:
        return gettext(NOTHING_COPIED)
    if not found.copied_words:
        return gettext(SHARE_UNKNOWN)
    return share_in_others(found.similarity, are_earlier=not of_unknown_order(found))


def share_in_others(similarity: float, *, are_earlier: bool) -> str:
    """How much of a story stands in its sources, which are called earlier only if all of them are known to be."""
    if are_earlier:
        return gettext("%(share)s of this story stands in earlier stories by others") % {"share": percent(similarity)}
    return gettext("%(share)s of this story stands in stories by others") % {"share": percent(similarity)}


def case_headline(row: Mapping[str, Any]) -> str:
    """How much of the lead of a case (a row of `ledger.case_queue.select`) stands in its sources."""
    if row["sources"]:
        return share_in_others(row["similarity"], are_earlier=bool(row["is_ordered"]))
    if row["same_author"]:
        return gettext(SAME_AUTHOR)
    if COPIED.isdisjoint(row["statuses"].strip(",").split(",")):
        return gettext(NOTHING_COPIED)
    return gettext(SHARE_UNKNOWN)


def similarity_findings(found: Similarity) -> list[str]:
    """Further findings on a story and its sources, one sentence each."""
    if not found.sources:
        return []
    shown = {"copied": number(found.copied_words), "words": number(found.words), "n": number(len(found.sources))}
    from_sources = ngettext(
        "%(copied)s of %(words)s words, from %(n)s source",
        "%(copied)s of %(words)s words, from %(n)s sources",
        len(found.sources),
    )
    findings = [from_sources % shown]
    if unknown_order := of_unknown_order(found):
        before = ngettext(
            "It is not known whether %(n)s of the sources was published before this story",
            "It is not known whether %(n)s of the sources were published before this story",
            unknown_order,
        )
        findings.append(before % {"n": number(unknown_order)})
    unknown = sum(source.author_id is None for source in found.sources)
    if found.author_id is None:
        findings.append(gettext("The author of this story is not known"))
    elif unknown:
        same = gettext("It is not known whether the same author wrote %(n)s of the sources")
        findings.append(same % {"n": number(unknown)})
    return findings


def author_history(found: History) -> str:
    """How often an author's stories copy, in one line."""
    plagiarism = gettext("no verdict of plagiarism")
    if found.plagiarism:
        stories = ngettext(
            "%(n)s story with the verdict plagiarism", "%(n)s stories with the verdict plagiarism", found.plagiarism
        )
        plagiarism = stories % {"n": number(found.plagiarism)}
    line = gettext("%(plagiarism)s, %(open)s open") % {"plagiarism": plagiarism, "open": number(found.open)}
    if found.unordered:
        pairs = ngettext("%(n)s pair of unknown order", "%(n)s pairs of unknown order", found.unordered)
        line += f"; {pairs % {'n': number(found.unordered)}}"
    return line


def _findings(facts: Evidence) -> Iterator[str]:
    yield pair_order(facts)
    if facts.same_author is None:
        yield gettext("it is not known whether the same author wrote both")
    elif facts.same_author:
        yield gettext("the same author wrote both")
    else:
        yield gettext("two different authors wrote them")
    if facts.longest_run_words:
        yield gettext("the longest shared run has %(n)s words") % {"n": number(facts.longest_run_words)}
    if facts.common_words:
        common = gettext("%(n)s more words are in common passages, which many stories share")
        yield common % {"n": number(facts.common_words)}


def _warnings(facts: Evidence) -> Iterator[str]:
    if facts.estimated:
        yield gettext("the scores are estimates: a text was unavailable when they were computed")
    for side, about in facts.sides.items():
        if about.changed:
            changed = gettext("the page of %(side)s has changed since it was fingerprinted: this is its current text")
            yield changed % {"side": side.upper()}
        if about.gone:
            gone = gettext("the text of %(side)s is no longer available (%(why)s)")
            yield gone % {"side": side.upper(), "why": about.gone}


def scores(facts: Evidence) -> list[tuple[str, str]]:
    """The known scores, as (name, value)."""
    named: list[tuple[str, str]] = []
    if facts.hamming is not None:
        named.append(("SimHash", gettext("%(n)s of 128 bits differ") % {"n": facts.hamming}))
    if facts.jaccard is not None:
        named.append((gettext("Jaccard similarity"), f"{facts.jaccard:.2f}"))
    if facts.containment is not None:
        named.append((gettext("Containment, A in B"), f"{facts.containment:.2f}"))
        named.append((gettext("Containment, B in A"), f"{facts.matched_containment:.2f}"))
    if facts.copied_words is not None:
        named.append((gettext("Copied words"), number(facts.copied_words)))
    return named
