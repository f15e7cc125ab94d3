"""Every index nominates by signature exactly those who share enough bands, whatever it was replayed, and says which
buckets it cut short.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neardup.core.candidates.banding import Banding
from neardup.core.fingerprint.minhash import ROWS
from neardup.index.protocol import Mark
from neardup.languages import LANGUAGES
from neardup.records import Banded, Change, Language

from tests.support.builders import sketch_values
from tests.support.index_under_test import Bench
from tests.support.languages import BENGALI, ENGLISH, GUJARATI, HINDI, MARATHI, ODIA, PUNJABI, TAMIL, TELUGU

SIMHASH = bytes(range(16))
BASE = bytes(range(ROWS))
SPOKEN = st.sampled_from([HINDI, ENGLISH])
# Signatures that share with BASE the bands whose bits are set.
signatures = st.one_of(
    st.integers(0, 2**32 - 1), st.sets(st.integers(0, 31), max_size=4).map(lambda bands: sum(1 << b for b in bands))
).map(lambda bits: bytes(row ^ 0xFF * (~bits >> n // 2 & 1) for n, row in enumerate(BASE)))
stories = st.lists(st.tuples(SPOKEN, st.one_of(st.none(), signatures)), max_size=12)
reused = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def unlike(n: int) -> bytes:
    """The n-th of many SimHashes that have nothing in common."""
    return blake2b(n.to_bytes(8), digest_size=16).digest()


def changes_of(signed: Sequence[tuple[Language, bytes | None]]) -> list[Change]:
    """Stories 0, 1, ... enter, by changes 1, 2, ... under numbers 100, 101, ...; no two are near."""
    return [
        Change(n + 1, n, None, Banded(language, unlike(n), signature), 100 + n)
        for n, (language, signature) in enumerate(signed)
    ]


def sharing(log: Sequence[Change], probe: Banded, banding: Banding) -> list[int]:
    """The numbers that share enough bands with the probe, by trying each."""
    wanted = sketch_values(probe.signature, banding.bands)
    return [
        change.number
        for change in log
        if change.new and change.new.signature and change.new.language == probe.language
        and sum(map(int.__eq__, wanted, sketch_values(change.new.signature, banding.bands))) >= banding.shared
    ]  # fmt: skip


@pytest.mark.parametrize("bands", [8, 16, 32])
@pytest.mark.parametrize("shared", [1, 2, 3])
@given(signed=stories)
@reused
def test_those_who_share_enough_bands_are_found_and_nobody_else(
    bench: Bench, bands: int, shared: int, signed: list[tuple[Language, bytes | None]]
) -> None:
    banding = Banding(bands=bands, shared=shared)
    bench.reopen(banding)
    bench.clear()
    log = changes_of(signed)
    bench.apply(*log, applied=len(log))
    probes = [Banded(HINDI, SIMHASH, BASE)]
    probes += [replace(change.new, simhash=SIMHASH) for change in log if change.new]
    for probe, numbers in zip(probes, bench.numbers(*probes), strict=True):
        assert numbers == sharing(log, probe, banding), f"{bands} bands, {shared} shared, {probe.language}"


@given(signed=stories, pages=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=6))
@reused
def test_changes_that_come_again_change_nothing(
    bench: Bench, signed: list[tuple[Language, bytes | None]], pages: list[tuple[int, int]]
) -> None:
    bench.clear()
    log, done = changes_of(signed), 0
    for first, size in [*pages, (0, len(log))]:
        start = min(first, done)  # from before the mark perhaps, never from beyond it
        end = min(start + size, len(log))
        bench.apply(*log[start:end], applied=end)
        done = max(done, end)
        assert bench.mark().applied == done, "the mark went back"
    alike: dict[tuple[Language, int, int], int] = {}
    for language, signature in signed:
        for band, value in enumerate(sketch_values(signature, bench.banding.bands)):
            alike[language, band, value] = alike.get((language, band, value), 0) + 1
    sizes = bench.bucket_sizes(*(change.new for change in log if change.new))
    sketches = [n for name, n in sizes.items() if name.startswith("sketch:")]
    assert sorted(sketches) == sorted(alike.values())


def test_the_stories_of_a_rebuild_are_always_taken(bench: Bench) -> None:
    probe = Banded(MARATHI, SIMHASH, BASE)
    bench.apply(Change(0, 1, None, probe, 11))
    bench.apply(Change(0, 2, None, probe, 12), Change(0, 3, None, probe, 13))
    bench.apply(applied=0)
    assert bench.numbers(probe) == [[11, 12, 13]]
    assert bench.mark().applied == 0


def test_numbers_of_32_bits_are_kept(bench: Bench) -> None:
    probe = Banded(GUJARATI, SIMHASH, BASE)
    bench.apply(*(Change(0, 1, None, probe, number) for number in (0, 10, 0x0D0A0000, 2**32 - 1)))
    assert bench.numbers(probe) == [[0, 10, 0x0D0A0000, 2**32 - 1]]


def test_an_edited_story_is_found_by_its_new_number(bench: Bench) -> None:
    first, second = (Banded(TELUGU, unlike(n), signature) for n, signature in enumerate((BASE, bytes(ROWS))))
    bench.apply(Change(1, 7, None, first, 1), applied=1)
    bench.apply(Change(2, 7, first, second, 2), applied=2)
    assert bench.numbers(first, second) == [[1], [2]], "the number that was left stays, and no other comes"
    bench.apply(Change(3, 7, second, None), applied=3)
    assert bench.ids(second) == [set()]


@given(simhashes=st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=5, unique=True))
@reused
def test_a_story_without_a_signature_is_found_by_its_simhash_only(bench: Bench, simhashes: list[bytes]) -> None:
    bench.clear()
    signed = [Banded(TAMIL, simhash, BASE) for simhash in simhashes]
    unsigned = [Banded(TAMIL, simhash) for simhash in simhashes]
    bench.apply(*(Change(0, n, None, banded, n) for n, banded in enumerate(signed + unsigned)))
    found = bench.lookup(*signed, *unsigned)
    for n in range(len(simhashes)):
        for story in (found[n], found[len(simhashes) + n]):
            assert {n, len(simhashes) + n} <= story.ids | set(story.numbers.tolist())
        assert set(range(len(simhashes))) <= set(found[n].numbers.tolist())
        assert bench.packed or not len(found[len(simhashes) + n].numbers)


@pytest.mark.parametrize("most", [2, 3, 20])
@given(page=st.integers(1, 30), beyond=st.integers(1, 30), data=st.data())
@reused
def test_numbers_that_edits_left_behind_hide_no_story_that_came_later(
    bench: Bench, most: int, page: int, beyond: int, data: st.DataObject
) -> None:
    bench.reopen(Banding(max_bucket=most))
    bench.clear()
    banded = Banded(HINDI, SIMHASH, BASE)
    edits = most + beyond
    live = range(edits + 1, edits + 1 + data.draw(st.integers(1, most - 1), "live"))
    log = [Change(n, 7, banded if n > 1 else None, banded, n) for n in range(1, edits + 1)]
    log += [Change(n, 7 + n, None, banded, n) for n in live]
    for start in range(0, len(log), page):
        bench.apply(*log[start : start + page], applied=log[start : start + page][-1].seq)
    [found] = bench.lookup(banded)
    hidden = {edits, *live} - set(found.numbers.tolist())
    assert not hidden, f"{edits} edits of one story hide its current version or later stories: {hidden}"
    assert found.numbers.tolist() == [change.number for change in log][-most:], "not the latest"
    assert bench.ids(banded) == [{7, *(7 + n for n in live)}], "an id that was edited is there once, whatever the edits"


@given(signed=stories)
@reused
def test_a_story_finds_the_same_alone_as_among_others(
    bench: Bench, signed: list[tuple[Language, bytes | None]]
) -> None:
    bench.clear()
    bench.apply(*changes_of(signed))
    probes = [Banded(language, SIMHASH, signature) for language, signature in [*signed, *signed]]
    for probe, found in zip(probes, bench.lookup(*probes), strict=True):
        [alone] = bench.lookup(probe)
        assert (found.ids, found.numbers.tolist(), found.capped) == (alone.ids, alone.numbers.tolist(), alone.capped)


def test_a_bucket_that_is_capped_is_named_and_its_lowest_ids_or_latest_numbers_are_taken(bench: Bench) -> None:
    bench.reopen(Banding(shared=1, max_bucket=3))
    other = BASE[:6] + bytes(ROWS - 6)
    log = [
        Change(0, story_id, None, Banded(HINDI, SIMHASH, signature), number)
        for story_id, number, signature in [(9, 1, BASE), (7, 2, BASE), (8, 3, BASE), (5, 4, other), (6, 5, other)]
    ]
    bench.apply(*log)
    probes = [
        Banded(HINDI, SIMHASH, other),
        Banded(HINDI, SIMHASH, BASE),
        Banded(HINDI, SIMHASH),
        Banded(ODIA, SIMHASH, other),
    ]
    [full, first, unsigned, elsewhere] = bench.lookup(*probes)
    assert full.ids == unsigned.ids == (set() if bench.packed else {5, 6, 7}), "the lowest ids"
    assert full.numbers.tolist() == [3, 4, 5], "the latest numbers"
    assert first.numbers.tolist() == [1, 2, 3, 4, 5], "1 and 2 are among the latest where 4 and 5 are not"
    assert unsigned.numbers.tolist() == ([3, 4, 5] if bench.packed else [])
    names = {name: n for name, n in bench.bucket_sizes(probes[0]).items() if n > 3}
    sketches = {name: n for name, n in names.items() if name.startswith("sketch:")}
    assert [name.rpartition(":")[0] for name in sorted(sketches)] == [f"sketch:HINDI:{band}" for band in range(3)]
    if not bench.packed:
        assert sorted(sketches) == ["sketch:HINDI:0:0001", "sketch:HINDI:1:0203", "sketch:HINDI:2:0405"]
        names = sketches | {name: n for name, n in full.capped.items() if name not in sketches}
        assert names.keys() >= {"HINDI:0:0001+HINDI:1:0203"}
        assert len(names) == 3 + 4
    assert full.capped == names
    assert set(names.values()) == {5}
    assert unsigned.capped == {name: n for name, n in names.items() if name not in sketches}
    assert not elsewhere.capped

    bench.reopen(Banding(shared=3, max_bucket=3))
    assert bench.numbers(Banded(HINDI, SIMHASH, other)) == [[3, 4, 5]]
    assert bench.numbers(Banded(HINDI, SIMHASH, BASE[:6] + bytes([1]) * (ROWS - 6))) == [[3, 4, 5]]
    bench.reopen(Banding(max_bucket=5))
    assert not bench.lookup(Banded(HINDI, SIMHASH, other))[0].capped, "full, and no fuller"


def test_each_language_has_a_cap_of_its_own(bench: Bench) -> None:
    bench.reopen(Banding(), {BENGALI: Banding(max_bucket=2)})
    probes = [Banded(language, SIMHASH, BASE) for language in (BENGALI, PUNJABI)]
    bench.apply(*(Change(0, n, None, probe, n) for n in range(4) for probe in probes))
    found = bench.lookup(*probes)
    assert [one.numbers.tolist() for one in found] == [[2, 3], [0, 1, 2, 3]]
    assert bench.packed or [one.ids for one in found] == [{0, 1}, {0, 1, 2, 3}]


@given(signed=stories)
@reused
def test_how_many_bands_are_shared_needs_no_rebuild(bench: Bench, signed: list[tuple[Language, bytes | None]]) -> None:
    bench.clear()
    log = changes_of(signed)
    bench.apply(*log, applied=len(log))
    probe = Banded(ENGLISH, SIMHASH, BASE)
    for shared in (1, 2, 3):
        bench.reopen(Banding(shared=shared))
        assert bench.mark() == Mark("ledger-1", "version-1", len(log))
        assert bench.numbers(probe) == [sharing(log, probe, bench.banding)]


def test_a_lookup_of_more_keys_than_one_command_takes(bench: Bench) -> None:
    values = [bytes([n]) * ROWS for n in range(100)]
    probes = [Banded(language, unlike(n), value) for n, (value, language) in enumerate(product(values, LANGUAGES))]
    log = [Change(n + 1, n, None, probe, n) for n, probe in enumerate(probes)]
    bench.apply(*log, applied=len(log))
    assert bench.numbers(*probes) == [[n] for n in range(len(probes))]
