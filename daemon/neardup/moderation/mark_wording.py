"""The marks of stories in words."""

from neardup.moderation.interface import gettext, marked, ngettext, number
from neardup.records import Mark, MarkReason

NAMES = {
    MarkReason.MISLABELLED: marked("written in another script"),
    MarkReason.TRUNCATED: marked("read in part"),
    MarkReason.HIDDEN: marked("hidden text"),
    MarkReason.LOOK_ALIKES: marked("look-alike or unseen letters"),
    MarkReason.CONTROLS: marked("control characters"),
    MarkReason.EMPTY: marked("page without text"),
    MarkReason.NOT_TEXT: marked("page that is no text"),
    MarkReason.OVER_BUDGET: marked("page that takes too long to read"),
}


def mark_name(reason: str) -> str:
    """What moderators call a mark."""
    return gettext(NAMES[MarkReason(reason)])


def mark_in_words(mark: Mark) -> str:
    """A mark, with the share that it is about."""
    share = mark.detail.replace(" ", "\N{NO-BREAK SPACE}") if mark.detail.endswith("%") else ""
    return f"{mark_name(mark.reason)} {share}".rstrip()


def counted_marked(n: int) -> str:
    return ngettext("%(n)s story with marks:", "%(n)s stories with marks:", n) % {"n": number(n)}
