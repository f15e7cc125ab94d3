"""Postings that are regrouped by story are those that were inserted."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.index.passages import join
from neardup.index.passages.index import PassageIndex

hashes = st.sets(st.integers(0, 2**32 - 1) | st.integers(0, 9), max_size=6)


@given(stories=st.dictionaries(st.integers(1, 60), hashes, max_size=20), flushed=st.integers(0, 60))
@settings(max_examples=40)
def test_each_story_has_its_hashes_again(stories: dict[int, set[int]], flushed: int) -> None:
    """Some are in a segment, the others in memory."""
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "RANGE", 16)
        folder, scratch = Path(name) / "passages", Path(name) / "scratch"
        scratch.mkdir()
        index = PassageIndex.open(folder, "ledger-1", "algorithm-1")
        rows = [(number, np.array(sorted(its), np.uint32)) for number, its in sorted(stories.items())]
        index.insert(rows)
        if flushed:
            index.flush(1, flushed, flushed)
        found, wanted = dict[int, list[int]](), {number: sorted(its) for number, its in stories.items() if its}
        for one in index.by_story(scratch):
            numbers = np.arange(one.first, one.last + 1, dtype=np.uint32)
            starts, its = one.of(numbers)
            found |= {
                int(number): its[start:stop].tolist()
                for number, start, stop in zip(numbers, starts, starts[1:], strict=False)
                if stop > start
            }
        assert found == wanted
        assert list(scratch.iterdir()) == [], "a scratch file is left"
        index.close()
