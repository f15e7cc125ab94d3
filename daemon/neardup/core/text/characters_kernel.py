"""Counts the characters of a text by their kinds, as a compiled function; see `core.text.characters`."""

import numpy as np

from neardup.core.jit import compiled
from neardup.core.text.codepoints import Codes

U32 = np.uint32


@compiled
def count_characters(codes: Codes, step: int) -> tuple[np.uint32, np.uint32, np.uint32, np.uint32, np.uint32]:
    """The fields of `Characters`, in their order; the last three of every `step`-th code point."""
    letters, unusual = U32(0), U32(0)
    for place in range(len(codes)):
        code = codes[place]
        if (code | U32(0x20)) - U32(0x61) < U32(26) or code - U32(0x900) < U32(0x500) or code - U32(0x620) < U32(0xE0):
            letters += U32(1)
        elif not (
            code - U32(0x20) < U32(0x5F)
            or code - U32(0x09) < U32(5)
            or code - U32(0x2010) < U32(0x18)
            or code == U32(0xA0)
        ):
            unusual += U32(1)
    sampled, visible, signs = U32(0), U32(0), U32(0)
    for place in range(0, len(codes), step):
        code = codes[place]
        sampled += U32(1)
        visible += U32(code > U32(0x20))
        signs += U32(code - U32(0x900) < U32(0x480)) & U32((code & U32(0x7F)) - U32(0x3E) < U32(0x10))
    return letters, unusual, sampled, visible, signs
