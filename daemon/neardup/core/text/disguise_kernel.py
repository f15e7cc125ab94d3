"""Counts the letters of a text and its unusual characters, as a compiled function."""

import numpy as np

from neardup.core.jit import compiled
from neardup.core.text.codepoints import Codes

U32 = np.uint32


@compiled
def count_unusual(codes: Codes) -> tuple[np.uint32, np.uint32]:
    """How many code points are ASCII letters or in the blocks of Arabic or of India, and how many are unusual.

    The usual ones are those, the rest of ASCII without control characters, the no-break space and general punctuation.
    """
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
    return letters, unusual
