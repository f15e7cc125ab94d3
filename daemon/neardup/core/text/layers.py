"""The layers of a page: its texts by how likely they are to be seen, and which of them are read once more, apart."""

from collections import Counter

LEAST_APART = 200  # characters; layers that are shorter are read with the others alone
MOST_LAYERS = 2  # of doubtful texts are read apart; the others are read together

# What texts have in common that are as likely to be seen: the declarations by which they may be hidden.
Layer = frozenset[str]
SEEN: Layer = frozenset()
HIDDEN: Layer = frozenset(["hidden"])
ANIMATED: Layer = frozenset(["animation"])
PAINTED: Layer = frozenset(["painting"])


def apart(characters: Counter[Layer]) -> list[list[Layer]]:
    """The layers that are read once more: each large part of the page apart, and all that is left without it."""
    large = [layer for layer, n in characters.most_common() if n > LEAST_APART and layer != SEEN][:MOST_LAYERS]
    rest = [layer for layer in characters if layer != SEEN and layer not in large]
    parts = [part for part in ([SEEN], *([layer] for layer in large), rest) if _number(characters, part) > LEAST_APART]
    without = [[layer for layer in characters if layer not in part] for part in parts]
    return (
        parts + without if len(parts) > 2 else parts if len(parts) == 2 else []
    )  # of two, one is left without the other


def _number(characters: Counter[Layer], part: list[Layer]) -> int:
    return sum(characters[layer] for layer in part)
