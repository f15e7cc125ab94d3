"""Law of the rows that executors make: a flag is filed under the language of its lower id, a story under its own."""

from typing import Any

from neardup.config import Config, Content, Source
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.verify.text import Text
from neardup.spark import results, verification

from tests.support.languages import HINDI, MARATHI, TEXTS

CONFIG = Config(source=Source(kind="scan"), content=Content(url="file:/"))


def side(name: str, story_id: int, language: str, published_at: int) -> dict[str, Any]:
    found = fingerprint_text(TEXTS[HINDI])
    assert found is not None
    facts: dict[str, Any] = dict.fromkeys(verification.FACTS)
    facts |= {"id": story_id, "language": language, "published_at": published_at, "text": TEXTS[HINDI]}
    facts |= {column: getattr(found, column) for column in ("text_hash", "simhash", "signature", "words", "shingles")}
    return {f"{column}_{name}": value for column, value in facts.items()}


def test_a_story_keeps_its_language_in_a_flag_across_languages() -> None:
    row = side("a", 1, MARATHI, 2_000) | side("b", 2, HINDI, 1_000) | {"by_passages": True}
    [flag] = verification.make_rows([row], Text, {}, CONFIG, flagged_at=3_000)
    assert flag.keys() == set(verification.make_verified_schema().names)
    assert (flag["language"], flag["story_id"], flag["story_language"]) == (MARATHI, 1, MARATHI)
    later = side("a", 1, HINDI, 1_000) | side("b", 2, MARATHI, 2_000) | {"by_passages": True}
    [flag] = verification.make_rows([later], Text, {}, CONFIG, flagged_at=3_000)
    assert (flag["language"], flag["story_id"], flag["story_language"]) == (HINDI, 2, MARATHI)
    copying = results.make_story_row([flag])
    assert copying is not None
    assert (copying["story_id"], copying["language"], copying["similarity"]) == (2, MARATHI, 1.0)
