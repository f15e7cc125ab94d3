"""Laws of the exported page: a hostile title stays plain text; every language and kind is shown, and what is left out
is said; a story always has a name; and the legend explains the marks that are shown.
"""

import re
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.verify.tiers import EXACT, NEAR, PARTIAL, SIMILAR
from neardup.ledger import cases
from neardup.moderation.export import page as listing
from neardup.moderation.export.page import share_fairly
from neardup.moderation.export.tables import ExportRow
from neardup.moderation.export.write import ExportOptions, write
from neardup.moderation.templating import make_visible
from neardup.records import Fingerprinted, Kind, Language, Signals, Story
from selectolax.lexbor import LexborHTMLParser

from tests.support.builders import commit, fingerprint_of, flag_pair, flag_spans, ledger_in_memory, spans_of
from tests.support.exported_pairs import ATTACKING, page, pair, pairs_of
from tests.support.languages import CODES, HINDI, TAMIL, TEXTS

TEXT_COLUMNS = "story_title", "matched_title", "story_author_id"
CAP = 20


@settings(deadline=None)
@given(st.lists(pairs_of, min_size=1, max_size=5))
@example(ATTACKING)
def test_titles_add_no_markup_to_the_page(pairs: list[ExportRow]) -> None:
    plain = [pair | dict.fromkeys(TEXT_COLUMNS, "t") for pair in pairs]
    titled = [pair | {n: pair[n] or "t" for n in TEXT_COLUMNS} for pair in pairs]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.html"
        page(path, plain)
        wanted = _elements(path)
        page(path, titled)
        assert _elements(path) == wanted, "a title added an element or an attribute"
        tree = LexborHTMLParser(path.read_text(encoding="utf-8"))
    shown = [node.text() for node in tree.css(".two .name bdi")]
    assert shown == [make_visible(row[side]) for row in titled for side in ("matched_title", "story_title")]


def _elements(path: Path) -> list[tuple[str | None, list[str]]]:
    tree = LexborHTMLParser(path.read_text(encoding="utf-8"))
    assert tree.root is not None
    return [(node.tag, sorted(node.attributes)) for node in tree.root.traverse()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_is_self_contained_and_names_languages(tmp_path: Path, language: Language) -> None:
    path = tmp_path / "pairs.html"
    page(path, [pair(language=language, story_title=TEXTS[language], matched_title="<script>")])
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"""<script|(?:src|action|url)\s*[=(]|href=(?!"#)|@import""", text), "it makes a request"
    tree = LexborHTMLParser(text)
    [policy] = [node.attributes["content"] or "" for node in tree.css("meta[http-equiv=Content-Security-Policy]")]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert [node.attributes["lang"] for node in tree.css(".two .name bdi")] == [CODES[language]] * 2
    assert [node.text() for node in tree.css(".two .name bdi")] == ["<script>", TEXTS[language]]
    assert tree.css_first(f"#language-{language}") is not None


def test_page_shows_the_figures_in_words(tmp_path: Path) -> None:
    path = tmp_path / "pairs.html"
    figures = pair(
        kind="partial", hamming=17, jaccard=0.11, containment=0.81, matched_containment=0.119, longest_run_words=214,
        story_published_at="2026-11-23T12:00:00Z", matched_published_at="2026-11-20T11:00:00Z", earlier_id=1,
        same_author=False, cluster_id=1, cluster_size=3, status="not_similar", context="template",
    )  # fmt: skip
    page(path, [figures])
    [article] = LexborHTMLParser(path.read_text(encoding="utf-8")).css("article")
    text = " ".join(article.text().split())
    for words in (
        "Partial copy: a large part of one is contained in the other",
        "12 % of A's word pairs are also in B; 81 % of B's in A",
        "Jaccard similarity: 0.11", "The longest shared run has 214 words", "17 of 128 bits differ",
        "A was published 3 days before B", "Two different authors wrote them", "In a cluster of 3 stories",
        "not similar", "Matches stories with the verdict template",
    ):  # fmt: skip
        assert words in text, f"{words!r} is not in {text!r}"


@given(st.dictionaries(st.integers(0, 60), st.integers(0, 200)), st.integers(0, 500))
def test_places_are_shared_fairly(sizes: dict[int, int], places: int) -> None:
    shares = share_fairly(sizes, places)
    assert list(shares) == list(sizes)
    assert shares.total() == min(places, sum(sizes.values())), "a place was wasted or made up"
    most = max(shares.values(), default=0)
    for group, size in sizes.items():
        assert shares[group] == size or most - 1 <= shares[group] <= size, "one group displaces another"


def test_page_shows_cases_of_every_language_and_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_CASES_SHOWN", CAP)
    groups: dict[tuple[Language, Kind], int] = {
        (HINDI, EXACT): 30, (HINDI, PARTIAL): 9, (TAMIL, NEAR): 2, (TAMIL, PARTIAL): 12, (TAMIL, SIMILAR): 1,
    }  # fmt: skip
    path, story = tmp_path / "flags.html", 0
    with closing(ledger_in_memory()) as db:
        for (language, kind), count in groups.items():
            for n in range(count):
                signals = Signals(0, jaccard=n / 100, containment_a=n / 100, containment_b=0)
                flag_pair(db, story, story + 1, kind, language=language, signals=signals)
                story += 2
        cases.refresh(db)
        shown_ids = write(db, path, ExportOptions("html"), SHIPPED)
    tree = LexborHTMLParser(path.read_text(encoding="utf-8"))
    articles = [node.attributes["class"] or "" for node in tree.css("article")]
    shown = {group: sum(f"kind-{group[1]} language-{group[0]}" in article for article in articles) for group in groups}
    assert shown == {(HINDI, EXACT): 6, (HINDI, PARTIAL): 5, (TAMIL, NEAR): 2, (TAMIL, PARTIAL): 6, (TAMIL, SIMILAR): 1}
    assert [node.attributes["id"] for node in tree.css(".evidence")] == [f"flag-{n}" for n in shown_ids]
    left_out = [node.text() for node in tree.css(".left-out li")]
    assert left_out == [
        "exact, Hindi: 24 of 30 left out", "partial, Hindi: 4 of 9 left out", "partial, Tamil: 6 of 12 left out",
    ]  # fmt: skip
    assert "20 of 54 cases are shown" in tree.text()


def test_case_lists_the_pairs_of_its_lead_and_counts_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Story 5 copies from four others, the most from 3; two of these are alike, which is no evidence on story 5."""
    monkeypatch.setattr(listing, "PAIRS_OF_A_CASE", 3)
    with closing(ledger_in_memory()) as db:
        for n in range(1, 6):
            story = Story(n, HINDI, f"{n}.html", f"a{n}", title=f"कथा {n}", published_at=n)
            commit(db, Fingerprinted(story, fingerprint_of(n.to_bytes(16)), None))
        for n, count in enumerate((10, 20, 60, 5), 1):
            flag_spans(db, n, 5, SIMILAR, spans_of((0, count)), spans_of((0, count)))
        flag_spans(db, 1, 2, EXACT, spans_of((0, 50)), spans_of((0, 50)))
        unsettled = write(db, tmp_path / "unsettled.html", ExportOptions("html"), SHIPPED)
        cases.refresh(db)
        shown = write(db, tmp_path / "flags.html", ExportOptions("html"), SHIPPED)
    assert sorted(unsettled) == [1, 2, 3, 4, 5], "a flag that has no case yet is left out"
    [article] = LexborHTMLParser((tmp_path / "flags.html").read_text(encoding="utf-8")).css("article")
    text = " ".join(article.text().replace("\N{NO-BREAK SPACE}", " ").split())
    for words in ("Exact copy", "5 pairs", "60 % of this story stands in earlier stories by others", "कथा 5",
                  "And 2 more pairs"):  # fmt: skip
        assert words in text, f"{words!r} is not in {text}"
    assert len(shown) == 3 and 5 not in shown, "a pair of two sources is shown in place of a source of the lead"


def test_page_says_whether_cases_are_left_out(tmp_path: Path) -> None:
    sentences = "1 of 50,000 cases are shown: select fewer, or use another format", "There are no flagged pairs."
    for pairs, chosen, expected in (
        ([pair()], None, (False, False)),
        ([pair()], Counter({(HINDI, "exact"): 50_000}), (True, False)),
        ([], None, (False, True)),
    ):
        page(tmp_path / "pairs.html", pairs, chosen)
        text = (tmp_path / "pairs.html").read_text(encoding="utf-8")
        assert tuple(sentence in text for sentence in sentences) == expected


def test_story_without_a_title_has_its_path_or_id_as_name(tmp_path: Path) -> None:
    page(tmp_path / "pairs.html", [pair(matched_path="a/1.html")])
    tree = LexborHTMLParser((tmp_path / "pairs.html").read_text(encoding="utf-8"))
    assert [node.text() for node in tree.css(".two .name bdi")] == ["a/1.html", "Story 2"]
