"""Proofs of what was seen first hold with the public key alone, and nothing that is not so can be proved."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from neardup.config import Config, Content, Extract, Ledger, Reference, Source
from neardup.config.sections import WorksContent
from neardup.core.page import read_file
from neardup.core.text.extraction import Extraction
from neardup.core.verify.text import Text
from neardup.errors import Fatal, Misuse, NeardupError
from neardup.ledger import connect
from neardup.query.proof import Proof, make_key, prove, prove_head, read_proof, verify

from tests.support.builders import commit, fingerprinted
from tests.support.languages import HINDI
from tests.support.sample_texts import STORIES
from tests.support.service import configuration, http_service, problem_of

PAGE = b"<p>ten words and more of a story that somebody wrote first, long before the others</p>"
STORY = 7


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A ledger that saw six stories, STORY among them as PAGE."""
    text = read_file(PAGE, Extraction())
    assert isinstance(text, Text)
    paths = Ledger(path=tmp_path / "ledger.db", proof_key=tmp_path / "proof.key")
    with closing(connect(paths.path)) as db:
        for n in range(6):
            commit(db, fingerprinted(STORY + n, n, text_sha256=text.sha256 if n == 0 else bytes([n] * 32)))
    return Config(source=Source(kind="scan"), content=Content(url="file:/"), ledger=paths)


def proof_of_story(config: Config) -> Proof:
    proof = prove(config, STORY)
    assert proof is not None
    return proof


def changed(proof: Proof, **fields: object) -> Proof:
    return msgspec.structs.replace(proof, **fields)


def test_a_proof_holds_offline_and_says_which_text_is_that_of_a_page(config: Config) -> None:
    key = make_key(config.ledger.proof_key)
    content = msgspec.json.encode(proof_of_story(config))
    verified = verify(read_proof(content), key, PAGE)
    assert verified.head.size == 6 and verified.of_page == verified.proof.entries[0]
    assert prove(config, 99) is None, "a story that was never seen"
    with pytest.raises(Fatal, match="another text"):
        verify(read_proof(content), key, PAGE.replace(b"first", b"last"))


def test_the_text_of_a_work_is_extracted_as_the_reference_has_it(config: Config) -> None:
    extract = Extract(body="p", strip=("i",))
    reference = Reference(manifest=Path("works.csv"), content=WorksContent(url="file:/"), extract=extract)
    config = msgspec.structs.replace(config, reference=reference)
    make_key(config.ledger.proof_key)
    with closing(connect(config.ledger.path)) as db:
        commit(db, fingerprinted(-2, 6, text_sha256=bytes(32)))
    of_work, of_story = prove(config, -2), prove(config, STORY)
    assert of_work is not None and (of_work.body, of_work.strip) == ("p", ["i"])
    assert of_story is not None and (of_story.body, of_story.strip) == ("", [])


def test_what_was_tampered_with_is_refused_by_name(config: Config, tmp_path: Path) -> None:
    key, proof = make_key(config.ledger.proof_key), proof_of_story(config)
    [entry], other = proof.entries, make_key(tmp_path / "other.key")

    def with_entry(**fields: object) -> Proof:
        return changed(proof, entries=[msgspec.structs.replace(entry, **fields)])

    refusals: list[tuple[str, Callable[[], object]]] = [
        ("is not in the log", lambda: verify(with_entry(seen_at=entry.seen_at - 1), key)),
        ("is not in the log", lambda: verify(with_entry(text_sha256="0" * 64), key)),
        ("is not in the log", lambda: verify(with_entry(path=entry.path[:-1]), key)),
        ("is not in the log", lambda: verify(changed(proof, story="8"), key)),
        ("names no story", lambda: verify(changed(proof, story=""), key)),
        ("tampered", lambda: verify(changed(proof, head=proof.head.replace("\n6\n", "\n7\n")), key)),
        ("not signed by this key", lambda: verify(proof, other)),
        ("not a signed head", lambda: verify(changed(proof, head="nothing"), key)),
        ("is no public key", lambda: verify(proof, "neardup+nothing")),
        ("damaged", lambda: verify(proof, key.replace("neardup+", "neardup+0"))),
        ("not a proof", lambda: read_proof(b'{"head": 1}')),
        ("not a proof", lambda: read_proof(b"\xff")),
        ("exists", lambda: make_key(config.ledger.proof_key)),
    ]
    for message, refused in refusals:
        with pytest.raises(NeardupError, match=message):
            refused()


def test_an_earlier_head_is_the_beginning_unless_the_ledger_was_restored_or_rewritten(config: Config) -> None:
    key = make_key(config.ledger.proof_key)
    former = prove_head(config, None).head
    with closing(connect(config.ledger.path)) as db:
        commit(db, fingerprinted(STORY, 9, text_sha256=bytes(32)))
    verified = verify(prove_head(config, former), key)
    assert verified.head.size == 7
    with pytest.raises(Fatal, match="rewritten"):
        verify(changed(verified.proof, consistency=["0" * 64]), key)
    with closing(connect(config.ledger.path)) as db:
        db.execute("UPDATE first_seen SET seen_at = 1 WHERE position = 2")
        with pytest.raises(Fatal, match="rewritten"):
            prove_head(config, former)
        db.execute("DELETE FROM first_seen WHERE position > 2")
        with pytest.raises(Fatal, match="restored from a copy"):
            prove_head(config, former)


def test_without_a_key_nothing_is_signed(config: Config, tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="cannot read"):
        proof_of_story(config)
    (tmp_path / "proof.key").write_text("short")
    with pytest.raises(Misuse, match="is no key"):
        prove_head(config, None)


async def test_the_service_proves_since_when_a_submitted_story_is_known(tmp_path: Path) -> None:
    config = configuration(tmp_path)
    config = msgspec.structs.replace(config, ledger=Ledger(path=config.ledger.path, proof_key=tmp_path / "proof.key"))
    key = make_key(config.ledger.proof_key)
    async with http_service(config) as (client, _):
        text = STORIES[HINDI][0]
        async with client.put("/v1/stories/1", json={"language": HINDI, "text": text}) as answer:
            assert answer.status == 200, await answer.text()
        async with client.get("/v1/stories/1/proof") as answer:
            verified = verify(read_proof(await answer.read()), key, text.encode())
        assert verified.of_page is not None
        for unknown in ("2", "none"):
            status, problem = await problem_of(client, "GET", f"/v1/stories/{unknown}/proof")
            assert (status, problem["type"]) == (404, "urn:neardup:problem:no-proof")
