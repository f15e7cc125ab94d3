"""Which marks a page shows, so that its legend explains these and no others."""

from collections.abc import Iterable, Iterator

from neardup.moderation.evidence.alignment import Mark
from neardup.moderation.evidence.fragments import AlignedStories, Fold, Fragment, Side

COPIED = {Mark.COPIED, Mark.UNCHANGED}


def marks_of(a: Iterable[Fragment], b: Iterable[Fragment]) -> set[str]:
    """The marks among the fragments of A and of B: "copied", and "changed_a" and "changed_b" for edited words."""
    in_a, in_b = ({fragment.mark for fragment in fragments} for fragments in (a, b))
    found = {
        "copied": bool((in_a | in_b) & COPIED),
        "changed_a": Mark.CHANGED in in_a,
        "changed_b": Mark.CHANGED in in_b,
    }
    return {mark for mark, occurs in found.items() if occurs}


def marks_of_stories(aligned: AlignedStories) -> set[str]:
    """The marks in two whole stories."""
    return marks_of(_fragments(aligned.a), _fragments(aligned.b))


def _fragments(side: Side) -> Iterator[Fragment]:
    for block in side.blocks:
        for paragraph in block.paragraphs if isinstance(block, Fold) else (block,):
            yield from paragraph.fragments
