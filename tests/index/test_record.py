"""Every index has on record what decides where a story stands, and notices where that is set to something else."""

from neardup.core.candidates.banding import Banding
from neardup.core.fingerprint.minhash import ROWS
from neardup.index.protocol import Mark
from neardup.records import Banded, Change

from tests.support.index_under_test import Bench
from tests.support.languages import MALAYALAM, ODIA

SIMHASH = bytes(range(16))
BASE = bytes(range(ROWS))


def test_other_bands_are_noticed(bench: Bench) -> None:
    bench.apply(applied=4)
    told = Mark("ledger-1", "version-1, made for another detection.bands", None)
    for other in ({}, {ODIA: Banding(bands=32)}):
        bench.reopen(Banding(bands=16), other)
        assert bench.mark() == told
    bench.clear()
    assert bench.mark() == Mark("ledger-1", "version-1", None)
    bench.reopen(Banding(bands=16))
    assert bench.mark() == told, "bands of one language were changed"


def test_another_distance_is_noticed_where_the_layout_depends_on_it(bench: Bench) -> None:
    bench.apply(applied=4)
    bench.reopen(Banding(hamming=5))
    other = Mark("ledger-1", "version-1, made for another detection.hamming", None)
    assert bench.mark() == (other if bench.packed else Mark("ledger-1", "version-1", 4))


def test_bucket_sizes_name_both_tiers(bench: Bench) -> None:
    banded = Banded(MALAYALAM, SIMHASH, BASE)
    bench.apply(*(Change(0, n, None, banded, n) for n in range(3)))
    sizes = bench.bucket_sizes(banded, banded)
    assert set(sizes.values()) == {3}
    sketches = {name for name in sizes if name.startswith("sketch:")}
    assert len(sketches) == 32
    assert bench.packed or sketches == {f"sketch:MALAYALAM:{n}:{2 * n:02X}{2 * n + 1:02X}" for n in range(32)}
    assert {name.partition(":")[0] for name in sizes.keys() - sketches} == {"MALAYALAM"}
