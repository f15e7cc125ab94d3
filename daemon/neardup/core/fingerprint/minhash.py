"""The MinHash signature of a story: 64 bytes that estimate the Jaccard similarity of two stories' shingles.

Broder, "On the resemblance and containment of documents" (SEQUENCES 1997).  A shingle is a pair of adjacent words.  Of
the hashes of a story's shingles the least is taken under each of 64 permutations, and of each minimum one byte is
stored: Li and König, "b-Bit minwise hashing" (WWW 2010).  Row p of a signature is the top byte of the least hash under
permutation p.  Two stories of Jaccard similarity J agree in a row with probability J + (1 - J) / 256.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.word_hashes import Hashes, hash_word_pairs, mix
from neardup.core.sets import find_distinct

Constants = npt.NDArray[np.uint64]

# The permutations x -> MULTIPLIERS * x + ADDENDS modulo 2^64.  They are literals, so that no version of a random
# generator can change them.  The multipliers are odd, so that each map is a permutation.
MULTIPLIERS: Constants = np.array([
    0xCE14ABEEABB8E5A9, 0xCED5352505CC99F5, 0x83EC603F7806ADC1, 0x492A477CA1570477, 0x0DCE670AFAC210ED,
    0x622476854726028F, 0x6891B332923923C5, 0x0B9727B5218D35CF, 0x0C7B62A500428AB5, 0xFFCA01812618B891,
    0xA701A97F30E43655, 0x3C08DC4EC010F76D, 0x6F58B9084840B5BD, 0xF964443043638ABF, 0xE5CE33212D7F2843,
    0xD81F8678CC3555D9, 0x6474A1D01DA07F0F, 0x7E36C1ADA0C69753, 0xAD3B836BAA76397F, 0x0F90C43FA9B58B35,
    0x8E3B8C0FF587898B, 0x457DDA33E74C8CFD, 0xE130D1BD5C8C7597, 0x10705B7C2FD8D947, 0xADDED7485FB8582D,
    0xDEBE1EBE1F4B9225, 0x3A318BFF574F4BBF, 0xE53C18878B610985, 0xDF4833C2E2496B35, 0x04BD8B5C4E74BD4B,
    0xB51E6DF3C7345DB9, 0x004E9F59C55EC2CD, 0x80DC75FA09B12F6D, 0x6FC9697455CCAD0F, 0x340860BBEE69EB95,
    0x532F70EF8729B513, 0xCE6420C04B82EBE3, 0x5103010627395BE9, 0x262764821E68CE4B, 0xB2D1AE8A47F083B1,
    0x72D3C943945D0EBD, 0xCC874C692B6780A9, 0x3C4ACE79CCBED3D7, 0x51DD68380F48D209, 0xCCC4E795256095F3,
    0x81CF37B18501400D, 0x81A2728C4A623623, 0x3C7737E8F7AB67D5, 0x03B8A650C49FE9BF, 0xEEE7C2F35055810B,
    0x15F8ADD5DF0B1A6D, 0xD84D1F73D7D17383, 0x5E2D6E9E740A1E1D, 0xF3763DF9FAFA49A7, 0x6640BBE3AD5E3B97,
    0xEFBAAABE35D08399, 0x8E607CAF44CF58FD, 0x3D798245ACB5940F, 0xBDCDCF8150AE4EED, 0xACA4CDEA3289848D,
    0xAF2812A2F1D044A3, 0x76BD3179A56CB84D, 0x38CDB048F7C7EF1D, 0xA414A7325B18910B,
], np.uint64)  # fmt: skip

ADDENDS: Constants = np.array([
    0x0DB51BCDD3CF4D43, 0x589ABD4F94C56A8C, 0x51545ACAEB9C0B6B, 0x30318FFBF77CFACF, 0x66360353AA345742,
    0x18D5D3A905426889, 0x31FA8EC498B0DEA9, 0x6622B29494151F08, 0x30B36ABCEC5BDC6E, 0x5B4C08A003C137A9,
    0x4E66FBC08DCAA919, 0x7872B84F15E5F8F2, 0x7EEF433DD6B9AAAD, 0x5CA16C6B4EF7D7C6, 0x678831A5B0200261,
    0x139114C18E7514C6, 0x5B3FFCF5AE1D26B4, 0x6C7EF4A83E2497BA, 0x335B5D84F882BE5F, 0x46D0E5B5B64439F2,
    0x3D5FDACA529EBDBF, 0x7AB0E1B44D121E15, 0x289C8F6DDDF3E7E9, 0x3377817AB67166BC, 0x001E23C0133FD495,
    0x35C89B59655F5EA9, 0x50D2E5F8AD06D49D, 0x77ACCE1D48326F79, 0x763B08C9CEC6D0B0, 0x29E699434A1306E0,
    0x7E92FF82A94E6CDF, 0x1805BB814B027B82, 0x69605276EA564687, 0x14211431017F951B, 0x33DA45CCD89E81DA,
    0x096792CFABA81D8F, 0x6DD4383E185B0D90, 0x6A160E20EA80A390, 0x11E49DA0C92F0232, 0x4378399B294661CF,
    0x210AC7D37F7D9F40, 0x3EF2819246323C60, 0x46CF7453C05BEF22, 0x0D99FEB15A2E5FD6, 0x6EA3DBC37D8FB958,
    0x23AC522BE24C473E, 0x393B5645B86CF3C7, 0x07543FEC278D1C5D, 0x0059F475DF40590F, 0x18FAFCB9618B3DA0,
    0x2BBC032ED24F8592, 0x76CC6BAB1E3E37EE, 0x71E29DD6BCBE5A02, 0x3D810EAC18504E2C, 0x3A3591DA2C6D1F84,
    0x5560072F0186512B, 0x6DEBAE3EAC208E66, 0x2B2C908E1B44B4CE, 0x659678B885DB360C, 0x331203A9C45AE0C4,
    0x4C09F52675615DB6, 0x5E65516E7B5E72A3, 0x402C790E4AF31AB6, 0x586B572919D99610,
], np.uint64)  # fmt: skip


ROWS = len(MULTIPLIERS)
MIN_SHINGLES = 20  # with fewer, one changed word changes a tenth of the rows, and short greetings resemble each other
CHANCE_AGREEMENT = 1 / 256  # the probability that two unequal minima have the same top byte

SignatureRows = npt.NDArray[np.uint8]  # (n, 64)


def hash_shingles(hashes: Hashes) -> Hashes:
    """The hashes of a story's words, at least one -> (n,) uint64: those of its distinct word pairs, ascending.

    A single word is one shingle.
    """
    return find_distinct(hash_word_pairs(hashes) if len(hashes) > 1 else mix(hashes))


def compute_signature(shingle_hashes: Hashes) -> bytes | None:
    """Hashes of distinct shingles -> 64 bytes; None for fewer than MIN_SHINGLES."""
    if len(shingle_hashes) < MIN_SHINGLES:
        return None
    permuted = shingle_hashes[:, None] * MULTIPLIERS
    permuted += ADDENDS  # in place: a second array of this size costs several times the arithmetic
    least: Hashes = permuted.min(axis=0)
    return (mix(least) >> np.uint64(56)).astype(np.uint8).tobytes()


def stack_signatures(signatures: Sequence[bytes | None]) -> SignatureRows:
    """N signatures -> (n, 64) uint8; zeros for None."""
    return np.frombuffer(b"".join(s or bytes(ROWS) for s in signatures), np.uint8).reshape(-1, ROWS)


def count_agreeing_rows(left: SignatureRows, right: SignatureRows) -> npt.NDArray[np.int64]:
    """The number of rows in which signatures agree; shapes broadcast over all but the last axis."""
    return np.asarray(np.bitwise_count(np.packbits(left == right, axis=-1)).sum(axis=-1, dtype=np.int64))


def estimate_jaccard(agreeing_rows: int) -> float:
    """The Jaccard similarity estimated from the number of agreeing rows, of 64; 0 to 1."""
    return max(0.0, (agreeing_rows / ROWS - CHANCE_AGREEMENT) / (1 - CHANCE_AGREEMENT))
