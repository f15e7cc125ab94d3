"""Grapheme clusters as the `regex` package finds them, and their parts."""

import unicodedata
from itertools import pairwise

import regex

CLUSTER = regex.compile(r"\X")
FAMILY = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
GRAPHEME_PARTS = [  # separators, combining characters and whole clusters
    *" \n\r.।(◌",
    *(
        "\u200d",
        "\u200c",
        "\ufe0f",
        "\u0301",
        "\u0940",
        "\u094d",
        "\u0d4d\u200d",
        "\u093c",
        "\u1160",
        "\u0600",
        "\u0d4e",
    ),
    *("क", "മ", "ക", "ഽ", "a", "\u1100", "ไ\u0e33", "\N{INFORMATION SOURCE}", "©", "1\ufe0f\u20e3"),
    *(FAMILY, "\N{GIRL}\N{EMOJI MODIFIER FITZPATRICK TYPE-4}", "\N{EMOJI MODIFIER FITZPATRICK TYPE-4}"),
    *("\U0001f1ee\U0001f1f3", "\U0001f1ee", "\U0001f3f4\U000e0067\U000e007f"),
]


def boundaries(text: str) -> set[int]:
    """The offsets at which grapheme clusters end, and 0.

    Unlike `regex`, this ends a cluster between a virama and a consonant if no consonant precedes the virama, and
    between a skin tone modifier and a consonant.
    """
    ends = {0}
    for cluster in CLUSTER.finditer(text):
        ends.add(cluster.end())
        first = unicodedata.category(cluster[0][0])
        for n, (before, character) in enumerate(pairwise(cluster[0]), cluster.start() + 1):
            if unicodedata.category(character) == "Lo" and (first != "Lo" or "\U0001f3fb" <= before <= "\U0001f3ff"):
                ends.add(n)
    return ends
