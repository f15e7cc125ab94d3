"""The layers of a page: its texts by how likely they are to be seen, and which of them are read once more, apart."""

from collections import Counter

LEAST_APART = 200  # characters; layers that are shorter are read with the others alone
LEAST_HIDDEN = 400  # characters; hidden texts are read too if they have so many,
MOST_HIDING = 2  # and more than so many times as many as are shown
MOST_LAYERS = 2  # of doubtful texts are read apart; the others are read together

# What texts have in common that are as likely to be seen: the declarations by which they may be hidden.
Layer = frozenset[str]
SEEN: Layer = frozenset()
HIDDEN: Layer = frozenset(["hidden"])
ANIMATED: Layer = frozenset(["animation"])
PAINTED: Layer = frozenset(["painting"])


def apart(characters: Counter[Layer]) -> list[list[Layer]]:
    """The layers that are read once more, by the numbers of their characters.

    Each large part of what may be seen is read apart, and all that is left without it.  What is hidden is read if it is
    much more than the rest.
    """
    large = [layer for layer, n in characters.most_common() if n > LEAST_APART and layer not in (SEEN, HIDDEN)]
    rest = [layer for layer in characters if layer not in (SEEN, HIDDEN, *large[:MOST_LAYERS])]
    parts = [[SEEN], *([layer] for layer in large[:MOST_LAYERS]), rest]
    parts = [part for part in parts if sum(characters[layer] for layer in part) > LEAST_APART]
    without = [[layer for layer in characters if layer not in (HIDDEN, *part)] for part in parts]
    again = parts + without if len(parts) > 2 else parts if len(parts) == 2 else []  # one of two is all but the other
    hidden = characters[HIDDEN]
    is_story = hidden >= LEAST_HIDDEN and hidden > MOST_HIDING * (characters.total() - hidden)
    return [*again, [HIDDEN]] if is_story else again
