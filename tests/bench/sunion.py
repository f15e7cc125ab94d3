"""The usual lookup of near SimHashes in the documented layout: fetch all members of all bands, then their hashes."""

from collections.abc import Sequence

import numpy as np
import redis
from neardup.core.candidates.banding import cut_band_values
from neardup.core.fingerprint.word_hashes import hash_rows, measure_hamming
from neardup.records import BandedFingerprint

from tests.support.synthetic import LANGUAGE


def look_up(client: redis.Redis, batch: Sequence[BandedFingerprint], distance: int) -> list[int]:
    """For each probe, the number of stories within the Hamming distance, found with SUNION and HMGET."""
    pipe = client.pipeline(transaction=False)
    for probe in batch:
        pipe.sunion([f"{LANGUAGE}:{band}:{value}" for band, value in enumerate(cut_band_values(probe.simhash))])
    members = [list(ids) for ids in pipe.execute()]
    for ids in filter(None, members):
        pipe.hmget(f"simhashes:{LANGUAGE}", ids)
    hashes = iter(pipe.execute())
    return [_near(next(hashes), probe, distance) if ids else 0 for probe, ids in zip(batch, members, strict=True)]


def _near(digits: Sequence[bytes], probe: BandedFingerprint, distance: int) -> int:
    rows = hash_rows([bytes.fromhex(hexadecimal.decode()) for hexadecimal in digits])
    return int(np.count_nonzero(measure_hamming(rows, hash_rows([probe.simhash])) <= distance))
