"""Two stories side by side on a terminal: their metadata, what they share, and the copied passages.

The text of a story is never interpreted, neither as Rich markup nor as terminal escape sequences.
"""

import re
from itertools import zip_longest

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from neardup.moderation.publication_wording import dated, dates_of, pair_order
from neardup.moderation.wording import percent
from neardup.query.evidence import Evidence, Excerpt, StoryFacts
from neardup.records import readable_time

SHOWN_PASSAGES = 10
FIRST_WORDS, LAST_WORDS = 60, 20  # shown of a passage that is longer than both together
COPIED, CONTEXT = "black on yellow", "dim"
# White space, control characters, and bidirectional formatting, which would reverse the text that follows.
BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")


def side_by_side(facts: Evidence) -> Group:
    """The evidence for a pair, laid out for a terminal."""
    parts: list[RenderableType] = [_header(facts), Text(), *map(Text, _findings(facts))]
    for n, passage in enumerate(facts.passages[:SHOWN_PASSAGES], 1):
        positions = f"from word {passage.a.word + 1:,} of A and word {passage.b.word + 1:,} of B"
        excerpts = _columns()
        excerpts.add_row(_excerpt(passage.a), _excerpt(passage.b))
        parts += [Text(), Text(f"{n}. {passage.words:,} words, {positions}", "bold"), excerpts]
    rest = facts.passages[SHOWN_PASSAGES:]
    if rest:
        parts += [Text(), Text(f"and {len(rest):,} more, of {sum(one.words for one in rest):,} words together")]
    return Group(*parts)


def _columns() -> Table:
    table = Table(box=None, show_header=False, expand=True, padding=(0, 1))
    for _ in "ab":
        table.add_column(ratio=1, overflow="fold")
    return table


def _header(facts: Evidence) -> Table:
    table = _columns()
    a, b = facts.a, facts.b
    table.add_row(Text(f"A: {_name(a)}", "bold"), Text(f"B: {_name(b)}", "bold"))
    for key, template in (("title", "{}"), ("path", "{}"), ("author_id", "author {}")):
        values = getattr(a, key), getattr(b, key)
        if any(values):
            table.add_row(*(Text(template.format(plain(value)) if value else "") for value in values))
    for dates in zip_longest(dated(dates_of(a)), dated(dates_of(b))):
        table.add_row(*(Text(f"{one[0]} {readable_time(one[1])} ({one[2]})" if one else "") for one in dates))
    table.add_row(*(Text(f"{side.words:,} words {side.language or ''}") for side in (a, b)))
    return table


def _name(about: StoryFacts) -> str:
    return plain(about.file or f"story {about.name or about.story_id}")


def _findings(facts: Evidence) -> list[str]:
    assert facts.share_a is not None
    assert facts.share_b is not None
    shares = f"{percent(facts.share_a)} of A's words are also in B, {percent(facts.share_b)} of B's in A"
    scores = (
        f"{facts.hamming} of 128 bits differ, Jaccard {facts.jaccard:.2f}, "
        f"containment {facts.containment:.2f} (A in B) and {facts.matched_containment:.2f} (B in A)"
    )
    findings = [
        "; ".join(filter(None, [shares, _words(facts)])),
        f"{facts.kind or 'not a copy by the configured thresholds'}: {scores}",
    ]
    findings.append(pair_order(facts))
    if facts.same_author is not None:
        findings.append("the same author wrote both" if facts.same_author else "two different authors wrote them")
    return findings + [
        f"the page of {side.upper()} has changed since it was fingerprinted"
        for side in facts.sides
        if facts.sides[side].changed
    ]


def _words(facts: Evidence) -> str:
    """What is known of the words that were copied; of two texts in two scripts, the longest run is not."""
    found = []
    if facts.copied_words is not None:
        common = f" and {facts.common_words:,} in common passages" if facts.common_words else ""
        found.append(f"{facts.copied_words:,} words copied{common}")
    if facts.longest_run_words is not None:
        found.append(f"the longest run {facts.longest_run_words:,}")
    return ", ".join(found)


def _excerpt(side: Excerpt) -> Text:
    return Text.assemble(
        (plain(side.before).lstrip(), CONTEXT),
        (f"«{abridged(side.text)}»", COPIED),
        (plain(side.after).rstrip(), CONTEXT),
    )


def abridged(text: str, first: int = FIRST_WORDS, last: int = LAST_WORDS) -> str:
    """A passage on one line; a long one without the words between its first and its last."""
    words = plain(text).split()
    if len(words) > first + last:
        words = [*words[:first], "[…]", *words[-last:]]
    return " ".join(words)


def plain(text: str) -> str:
    """A text on one line, without characters that a terminal would interpret."""
    return BLANK.sub(" ", text)
