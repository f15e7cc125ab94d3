"""A wrong command line ends in one line, before a session starts."""

from tests.support.command import Neardup, assert_one_line, embedded


def test_an_unknown_language_ends_in_one_line(neardup: Neardup) -> None:
    neardup.configure(embedded())
    wrong = neardup("spark", "--output", "out", "--input", "t.parquet", "--language", "Klingon")
    assert_one_line(wrong, 2, "--language", "Klingon")
