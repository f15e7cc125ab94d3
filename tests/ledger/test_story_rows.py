"""Law: unpacking a compact column returns the original text."""

from hypothesis import given
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.ledger import stories
from neardup.records import Fingerprinted, Story

from tests.support.builders import commit, fingerprint_of, ledger_in_memory
from tests.support.languages import HINDI


def test_languages_keep_their_numbers_in_the_ledger() -> None:
    db = ledger_in_memory()
    assert tuple(name for (name,) in db.execute("SELECT name FROM languages ORDER BY number")) == LANGUAGES


TEXTS = st.one_of(
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.from_regex(r'"[0-9a-fA-F]{31,33}"', fullmatch=True),
    st.from_regex(r'(W/)?"?[0-9a-f]{32}(-[0-9]{1,2})?"?\n?', fullmatch=True),
    st.from_regex(r"[-+]?0?[0-9]{1,20}\n?", fullmatch=True),
)


@given(etag=TEXTS.filter(lambda etag: etag != ""), author=TEXTS)  # an empty ETag is none
def test_unpacking_returns_the_original_text(etag: str | None, author: str | None) -> None:
    db = ledger_in_memory()
    story = Story(1, HINDI, author_id=author, title=author)
    commit(db, Fingerprinted(story, fingerprint_of(bytes(16)), etag))
    row = stories.describe(db, [1])[1]
    known = stories.read_stored_versions(db, [1]).get(1)
    assert known is not None and known.etag == row["etag"] == etag
    assert row["author_id"] == author
    assert row["title"] == ("1" if author is None else author)
    db.close()


def test_md5_and_id_are_stored_compactly() -> None:
    db = ledger_in_memory()
    commit(db, Fingerprinted(Story(1, HINDI, author_id="6755373518"), fingerprint_of(bytes(16)), f'"{"0f" * 16}"'))
    assert db.execute("SELECT etag, author_id FROM stories").fetchone() == (b"\x0f" * 16, 6755373518)
