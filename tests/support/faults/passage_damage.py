"""Damage to the segments of a passage index: what disks, power cuts and people do to files."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

HEADER_BYTES = 4096
Damage = Callable[[Path], None]  # of a folder with segments


def each(change: Callable[[bytearray], bytes | bytearray]) -> Damage:
    """Replace each segment by a changed copy: what a process has read of it before does not change under its feet."""

    def damage(folder: Path) -> None:
        for path in sorted(folder.iterdir()):
            changed = path.with_suffix(".changed")
            changed.write_bytes(change(bytearray(path.read_bytes())))
            changed.replace(path)

    return damage


def flipped_bits(content: bytearray) -> bytearray:
    """Flip a bit in each block after the header: wherever a lookup reads, it meets one."""
    rng = random.Random(len(content))
    for block in range(HEADER_BYTES, len(content), HEADER_BYTES):
        content[block + rng.randrange(HEADER_BYTES)] ^= 1 << rng.randrange(8)
    return content


def flipped_header(content: bytearray) -> bytearray:
    content[10] ^= 1
    return content


def torn(content: bytearray) -> bytearray:
    """Keep the first half only, as a write that was not completed; the file has its size."""
    return content[: len(content) // 2] + bytes(len(content) - len(content) // 2)


def truncated(content: bytearray) -> bytearray:
    return content[: len(content) // 2]


def emptied(_: bytearray) -> bytes:
    return b""


def lost_segment(folder: Path) -> None:
    min(folder.iterdir()).unlink()


def renamed_segment(folder: Path) -> None:
    """Give a segment the name of one with another range."""
    path = min(folder.iterdir())
    generation, first, last = path.stem.split("-")
    path.rename(path.with_name(f"{generation}-{first}-{int(last) + 3:010}{path.suffix}"))


KINDS: dict[str, Damage] = {
    "flipped bits": each(flipped_bits),
    "flipped header": each(flipped_header),
    "torn": each(torn),
    "truncated": each(truncated),
    "emptied": each(emptied),
    "a lost segment": lost_segment,
    "a renamed segment": renamed_segment,
    "a lost folder": shutil.rmtree,
}
