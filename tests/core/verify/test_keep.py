"""Laws of the keep policies."""

from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.publication_order import sort_key
from neardup.core.verify.clusters import POLICIES, Member, Policy, kept
from neardup.records import is_work

TIMES = st.none() | st.integers(0, 3)
MEMBERS = st.lists(
    st.builds(Member, st.integers(-3, 20), TIMES, st.integers(1, 3)),
    min_size=1,
    max_size=8,
    unique_by=lambda one: one[0],
)


@settings(max_examples=50)
@given(MEMBERS, st.sampled_from(POLICIES))
def test_one_member_is_kept_or_all_works_and_the_order_of_the_members_does_not_matter(
    members: list[Member], policy: Policy
) -> None:
    keep = kept(members, policy)
    works = {one.story_id for one in members if is_work(one.story_id)}
    assert keep == works if policy == "reference" and works else len(keep) == 1
    assert keep <= {one.story_id for one in members}
    assert kept(sorted(members, key=lambda one: one.story_id), policy) == keep


@settings(max_examples=50)
@given(MEMBERS)
def test_each_policy_keeps_what_it_names(members: list[Member]) -> None:
    [earliest], [newest], [longest] = (kept(members, policy) for policy in ("earliest", "newest", "longest"))
    by_id = {one.story_id: one for one in members}
    assert earliest == min(by_id, key=lambda story_id: sort_key(by_id[story_id].published, story_id))
    dates = [one.published for one in members if one.published is not None]
    assert by_id[newest].published == max(dates, default=None)
    assert by_id[longest].words == max(one.words for one in members)
