"""Proofs that a text was seen under an id at a time, which anyone can verify with the public key alone, offline.

A proof has the entries of a story in the log of what was seen first (neardup.ledger.first_seen), the path of each to
the root of the tree, and the signed head of the tree.  A proof of consistency shows in the same way that the log of an
earlier head is the beginning of the present one: after a restore the log is shorter, and after its history was
rewritten there is no such proof.

A signed head is a checkpoint of C2SP (https://c2sp.org/tlog-checkpoint): the name of the log, the size and the root, in
the signed note of Go's checksum database, signed with Ed25519.  A public key is written as there for
`note.NewVerifier`.
"""

import base64
import binascii
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from neardup.config import Config
from neardup.core.merkle import find_consistency_path, find_inclusion_path, hash_leaf, is_consistent, is_included
from neardup.core.page import read_file
from neardup.core.text.extraction import Extraction
from neardup.core.verify.text import Text
from neardup.errors import Fatal, Misuse, needs_extra
from neardup.ledger import first_seen, open_snapshot, runs
from neardup.ledger.first_seen import TreeHead, encode_entry
from neardup.records import format_count, format_time, is_work

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNER = "neardup"  # the name of the key
ED25519 = b"\x01"  # the algorithm, in a signed note
KEY_BYTES, KEY_HASH_BYTES = 32, 4
LAST_TIME = 253_402_300_799_999  # the end of the year 9999
DASH = "\u2014"
NO_KEY = "ledger.proof_key names no file: set it, and `neardup proof --new-key` makes the key"


HexHash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=LAST_TIME)]


class ProvedEntry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """An entry of the log as a proof states it: `path` leads from the leaf up, `seen_at` is since 1970 in UTC."""

    position: int
    seen_at: Milliseconds
    text_sha256: HexHash
    path: list[HexHash]


class Proof(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A proof, or a signed head alone: `head` is signed, and `entries` are those of `story`.

    `since` is an earlier signed head, and `consistency` the path from it to this one.  `body` and `strip` are the
    selectors of the configuration, by which the text is extracted from its page.
    """

    head: str
    story: Annotated[str, msgspec.Meta(pattern="^(-?[0-9]{1,19})?$")] = ""
    entries: list[ProvedEntry] = []
    body: str = ""
    strip: list[str] = []
    since: str = ""
    consistency: list[HexHash] = []


def make_key(path: Path | None) -> str:
    """Write a new private key to a file, and the public key to the file with `.pub` after its name; returns this one.

    Raises Misuse if there is such a file, or it cannot be written.
    """
    with needs_extra("proof", "proof --new-key"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - it is optional
    if path is None:
        raise Misuse(NO_KEY)
    key = Ed25519PrivateKey.generate()
    public = _encode_public_key(key)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(base64.b64encode(key.private_bytes_raw()) + b"\n")
        path.with_name(f"{path.name}.pub").write_text(f"{public}\n", encoding="utf-8")
    except FileExistsError:
        raise Misuse(f"ledger.proof_key: {path} exists: whoever loses a key cannot sign as before") from None
    except OSError as error:
        raise Misuse(f"ledger.proof_key: cannot write {path}: {error.strerror}") from error
    return public


def prove(config: Config, story_id: int) -> Proof | None:
    """The proof of every text that a story had; None if the log has no entry of it.  Raises Misuse without a key."""
    key = _read_key(config.ledger.proof_key)
    with open_snapshot(config.ledger.path) as db:
        entries = first_seen.list_entries(db, story_id)
        if not entries:
            return None
        subtree_hash, head = first_seen.make_subtree_hash(db), first_seen.compute_head(db)
        paths = [find_inclusion_path(entry.position, head.size, subtree_hash) for entry in entries]
        proved = [
            ProvedEntry(entry.position, entry.seen_at, entry.text_sha256.hex(), [step.hex() for step in path])
            for entry, path in zip(entries, paths, strict=True)
        ]
        signed = _sign(_format_origin(runs.get(db, "ledger_id")), head, key)
    extract = config.reference.extract if config.reference and is_work(story_id) else config.extract
    return Proof(head=signed, story=str(story_id), entries=proved, body=extract.body, strip=list(extract.strip))


def prove_head(config: Config, since: str | None) -> Proof:
    """The signed head of the tree, with the proof that the log of an earlier signed head is its beginning.

    Raises Misuse without a key or for what is no head, and Fatal if the ledger was restored or rewritten since then.
    """
    key = _read_key(config.ledger.proof_key)
    with open_snapshot(config.ledger.path) as db:
        head, origin = first_seen.compute_head(db), _format_origin(runs.get(db, "ledger_id"))
        signed = _sign(origin, head, key)
        if since is None:
            return Proof(head=signed)
        former = _open_head(since, key.public_key(), origin)
        if former.size > head.size:
            raise Fatal(
                f"the log has {format_count(head.size, 'entry', 'entries')} and had {former.size:,}: the ledger was"
                " restored from a copy"
            )
        if first_seen.compute_head(db, former.size) != former:
            first = format_count(former.size, "entry of the log is not", "entries of the log are not")
            raise Fatal(f"the first {first} as before: it was rewritten")
        path = find_consistency_path(former.size, head.size, first_seen.make_subtree_hash(db)) if former.size else []
    return Proof(head=signed, since=since, consistency=[step.hex() for step in path])


class Verified(NamedTuple):
    """What a proof shows: the head, the entries of the story, and which of them is that of the page that was given."""

    head: TreeHead
    proof: Proof
    of_page: ProvedEntry | None


def read_proof(content: bytes) -> Proof:
    """A proof from its JSON.  Raises Misuse."""
    try:
        return msgspec.json.decode(content, type=Proof)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Misuse(f"not a proof: {error}") from None


def verify(proof: Proof, public_key: str, page: bytes | None = None) -> Verified:
    """Verify a proof with the public key alone.

    Raises Fatal, which names what is wrong, and Misuse for what is no key.
    """
    key = _parse_public(public_key)
    head = _open_head(proof.head, key, None)
    if proof.entries and not proof.story:
        raise Fatal("the proof names no story")
    for entry in proof.entries:
        leaf = hash_leaf(encode_entry(int(proof.story), entry.seen_at, bytes.fromhex(entry.text_sha256)))
        if not is_included(leaf, entry.position, head.size, list(map(bytes.fromhex, entry.path)), head.root):
            raise Fatal(f"the entry of {format_time(entry.seen_at)} is not in the log that this head signs")
    if proof.since:
        former = _open_head(proof.since, key, proof.head.partition("\n")[0])
        path = list(map(bytes.fromhex, proof.consistency))
        if former.size and not is_consistent(former.size, former.root, head.size, head.root, path):
            raise Fatal("the log of the earlier head is not the beginning of this one: it was rewritten")
    return Verified(head, proof, None if page is None else _find_entry_of_page(page, proof))


def _find_entry_of_page(page: bytes, proof: Proof) -> ProvedEntry:
    text = read_file(page, Extraction(proof.body, tuple(proof.strip)))
    digest = text.sha256.hex() if isinstance(text, Text) else None
    for entry in proof.entries:
        if entry.text_sha256 == digest:
            return entry
    raise Fatal("the page has another text than the proof")


# The signed note.


def _sign(origin: str, head: TreeHead, key: "Ed25519PrivateKey") -> str:
    body = f"{origin}\n{head.size}\n{base64.b64encode(head.root).decode()}\n"
    signature = base64.b64encode(_hash_key(key.public_key()) + key.sign(body.encode())).decode()
    return f"{body}\n{DASH} {SIGNER} {signature}\n"


def _open_head(note: str, key: "Ed25519PublicKey", origin: str | None) -> TreeHead:
    """The head of a signed note, of any log or of that with this name.  Raises Fatal."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - the key was read with it

    body, _, signatures = note.rpartition("\n\n")
    lines = f"{body}\n".splitlines()
    try:
        name, size, root = lines[0], int(lines[1]), base64.b64decode(lines[2], validate=True)
    except (IndexError, ValueError):
        raise Fatal("not a signed head") from None
    for line in signatures.splitlines():
        dash, signer, signature = (*line.split(" "), "", "", "")[:3]
        with_hash = _decode(signature)
        if (dash, signer) == (DASH, SIGNER) and with_hash[:KEY_HASH_BYTES] == _hash_key(key):
            try:
                key.verify(with_hash[KEY_HASH_BYTES:], f"{body}\n".encode())
            except InvalidSignature:
                raise Fatal("the signature of the head is wrong: it was tampered with") from None
            if origin not in {None, name}:
                raise Fatal(f"the earlier head is of the log {name}, not of {origin}")
            return TreeHead(size, root)
    raise Fatal("the head is not signed by this key")


def _format_origin(ledger_id: str | None) -> str:
    return f"{SIGNER}/{ledger_id}"


# Keys.


def _read_key(path: Path | None) -> "Ed25519PrivateKey":
    with needs_extra("proof", "proof"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - it is optional
    if path is None:
        raise Misuse(NO_KEY)
    try:
        return Ed25519PrivateKey.from_private_bytes(base64.b64decode(path.read_bytes(), validate=False))
    except OSError as error:
        raise Misuse(f"ledger.proof_key: cannot read {path}: {error.strerror}") from error
    except ValueError:
        raise Misuse(f"ledger.proof_key: {path} is no key that `neardup proof --new-key` made") from None


def _parse_public(text: str) -> "Ed25519PublicKey":
    with needs_extra("proof", "verify-proof"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - it is optional
    name, _, rest = text.strip().partition("+")
    digits, _, encoded = rest.partition("+")
    raw = _decode(encoded)
    if raw[:1] != ED25519 or len(raw) != 1 + KEY_BYTES:
        raise Misuse(f"--key: {text.strip()[:80]!r} is no public key that `neardup proof --new-key` printed")
    key = Ed25519PublicKey.from_public_bytes(raw[1:])
    if name != SIGNER or digits != _hash_key(key).hex():
        raise Misuse("--key: the public key is damaged")
    return key


def _encode_public_key(key: "Ed25519PrivateKey") -> str:
    public = key.public_key()
    return f"{SIGNER}+{_hash_key(public).hex()}+{base64.b64encode(ED25519 + public.public_bytes_raw()).decode()}"


def _hash_key(key: "Ed25519PublicKey") -> bytes:
    return sha256(f"{SIGNER}\n".encode() + ED25519 + key.public_bytes_raw()).digest()[:KEY_HASH_BYTES]


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
