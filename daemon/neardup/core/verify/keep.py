"""Which members of a cluster to keep, where a corpus is cleaned of copies."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from neardup.core.publication_order import sort_key
from neardup.records import is_work

Policy = Literal["earliest", "newest", "longest", "reference"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


class Member(NamedTuple):
    """A member of a cluster: when it was published, in milliseconds, None if that is not known, and its words."""

    story_id: int
    published: int | None
    words: int


def kept(members: Sequence[Member], policy: Policy) -> set[int]:
    """The ids of the members of a cluster to keep: one story, or all works with the policy `reference`.

    - `earliest`: the first in the order of `sort_key`, which has works before stories and unknown dates last.
    - `newest`: the last that has a date; the earliest if none has.
    - `longest`: the one with the most words; of several, the earliest.
    - `reference`: the works of the reference; the earliest if there are none.
    """
    works = {one.story_id for one in members if is_work(one.story_id)}
    if policy == "reference" and works:
        return works
    ascending = sorted(members, key=lambda one: sort_key(one.published, one.story_id))
    chosen = ascending[0]
    if policy == "newest":
        dated = [one for one in ascending if one.published is not None]
        chosen = max(dated, key=lambda one: one.published or 0, default=chosen)
    elif policy == "longest":
        chosen = max(ascending, key=lambda one: one.words)
    return {chosen.story_id}
