"""What the ledger packs is given back as it was."""

from hypothesis import given
from hypothesis import strategies as st
from neardup.languages import LANGUAGES
from neardup.ledger import stories
from neardup.records import Fingerprinted, Story

from tests.support.builders import commit, fingerprint_of, ledger_in_memory
from tests.support.languages import HINDI


def test_the_languages_have_the_numbers_that_the_ledger_gave_them() -> None:
    db = ledger_in_memory()
    assert tuple(name for (name,) in db.execute("SELECT name FROM languages ORDER BY number")) == LANGUAGES


TEXTS = st.one_of(
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.from_regex(r'"[0-9a-fA-F]{31,33}"', fullmatch=True),
    st.from_regex(r'(W/)?"?[0-9a-f]{32}(-[0-9]{1,2})?"?\n?', fullmatch=True),
    st.from_regex(r"[-+]?0?[0-9]{1,20}\n?", fullmatch=True),
)


@given(etag=TEXTS, author=TEXTS)
def test_what_is_packed_is_given_back_to_the_letter(etag: str | None, author: str | None) -> None:
    db = ledger_in_memory()
    story = Story(1, HINDI, author_id=author, title=author)
    commit(db, Fingerprinted(story, fingerprint_of(bytes(16)), etag))
    row = stories.describe(db, [1])[1]
    known = stories.known_many(db, [1]).get(1)
    assert known is not None and known.etag == row["etag"] == etag
    assert row["author_id"] == row["title"] == author
    db.close()


def test_an_md5_and_an_id_take_their_bytes_alone() -> None:
    db = ledger_in_memory()
    commit(db, Fingerprinted(Story(1, HINDI, author_id="6755373518"), fingerprint_of(bytes(16)), f'"{"0f" * 16}"'))
    assert db.execute("SELECT etag, author_id FROM stories").fetchone() == (b"\x0f" * 16, 6755373518)
