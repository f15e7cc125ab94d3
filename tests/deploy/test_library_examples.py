"""The examples of the page on the library print what the page says."""

import doctest

from tests.support.paths import ROOT


def test_the_examples_of_the_library_are_true() -> None:
    page = ROOT / "deploy" / "docs" / "library.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried > 8, f"only {tried} examples of {page.name} were run"
    assert not failed, f"{failed} examples of {page.name} print something else; the output above shows them"
