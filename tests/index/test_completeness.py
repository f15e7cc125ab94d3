"""Every index finds exactly the stories that lack entries, and writes what they lack and no more."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neardup.records import BandedFingerprint, Change

from tests.support.index_under_test import Bench
from tests.support.languages import HINDI, TAMIL
from tests.support.sampling import count_examples

hashes = st.binary(min_size=16, max_size=16)
signatures = st.one_of(st.none(), st.binary(min_size=64, max_size=64))
fingerprints = st.builds(BandedFingerprint, st.sampled_from([HINDI, TAMIL]), hashes, signatures)
few = settings(
    deadline=None, max_examples=count_examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(inserted=st.lists(fingerprints, max_size=6), others=st.lists(fingerprints, max_size=6))
@few
def test_stories_lack_all_entries_until_restored(
    bench: Bench, inserted: list[BandedFingerprint], others: list[BandedFingerprint]
) -> None:
    bench.clear()
    stories = [Change(0, 100 - n, None, banded, n) for n, banded in enumerate(inserted + others, 1)]
    held, lost = stories[: len(inserted)], stories[len(inserted) :]
    bench.apply(*held, applied=7)
    missing = bench.runner.run(bench.index.count_missing(stories))
    assert missing[: len(held)] == [0] * len(held), "a story in its buckets counts as missing"
    assert all(missing[len(held) :]), "a story in none of its buckets counts as complete"
    bench.runner.run(bench.index.restore(stories))
    assert bench.runner.run(bench.index.count_missing(stories)) == [0] * len(stories)
    restored = bench.read_bucket_sizes(*(story.new for story in stories if story.new))
    assert bench.read_position().applied == 7, "a repair moved the position"
    bench.clear()
    bench.apply(*stories)
    assert restored == bench.read_bucket_sizes(*(story.new for story in stories if story.new)), (
        f"{len(lost)} were restored"
    )
