"""The disguises of a copied story, each in several strengths: what hides a copy from a comparison of words.

A strength is the share of the words that are changed, from 0 to 1, or of the letters where these are misread.  So the
recall by strength shows where detection ends.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from neardup.core.text.consonants import BLOCKS
from neardup.insights.edits import Apply, Edit, OtherStories, strip_signs

# How writers of the languages of India spell in Latin letters, by the offset in the block of a script.  Where there are
# several spellings, each word has one at random.
LATIN_CONSONANTS = dict(
    zip(
        range(0x15, 0x3A),
        (
            ("k",), ("kh",), ("g",), ("gh",), ("n",), ("ch",), ("chh", "ch"), ("j", "j", "z"), ("jh",), ("n",),
            ("t",), ("th",), ("d",), ("dh",), ("n",), ("t",), ("th",), ("d",), ("dh",), ("n",), ("n",),
            ("p",), ("f", "ph"), ("b",), ("bh",), ("m",), ("y",), ("r",), ("r",), ("l",), ("l",), ("zh", "l"),
            ("v", "w"), ("sh", "s"), ("sh", "s"), ("s",), ("h",),
        ),
        strict=True,
    )
)  # fmt: skip
LATIN_VOWELS = dict(
    zip(
        (0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0E, 0x0F, 0x10, 0x12, 0x13, 0x14),
        (
            ("a",), ("a", "aa"), ("i",), ("i", "ee"), ("u",), ("u", "oo"), ("ri",), ("e",), ("e",), ("ai",),
            ("o",), ("o",), ("au", "o"),
        ),
        strict=True,
    )
)  # fmt: skip
# The anusvara and its like, the tippi of Gurmukhi, and the chillus of Malayalam.
LATIN_SIGNS = {0x01: ("n", ""), 0x02: ("n", "m", "n"), 0x03: ("h",), 0x70: ("n",)} | {
    0x7A + nth: (letter,) for nth, letter in enumerate("nnrllk")
}
INDEPENDENT, VOWEL_SIGN = 0x06, 0x3E  # aa, as a letter and as a sign; the other vowels stand as far apart
VIRAMA, NUKTA, BLOCK_SIZE = 0x4D, 0x3C, 0x80
CLAUSE_WORDS = 8


class Disguise(Struct, frozen=True):
    """A disguise, which `apply` makes of a text in a strength."""

    name: str
    strengths: Sequence[float]
    apply: Callable[[str, float, OtherStories, random.Random], str | None]

    def list_edits(self) -> Iterator[Edit]:
        """The edits of this disguise, the weakest first."""
        for strength in self.strengths:
            yield Edit(self.edit_name(strength), self._disguise_by(strength))

    def edit_name(self, strength: float) -> str:
        """The name of its edit of a strength."""
        return f"{self.name}, {strength:.0%}"

    def _disguise_by(self, strength: float) -> Apply:
        return lambda text, others, rng: self.apply(text, strength, others, rng)


def disguise_words(
    changed: Callable[[str, OtherStories, random.Random], Sequence[str]],
) -> Callable[[str, float, OtherStories, random.Random], str]:
    """A disguise that puts words in place of every nth word, as often as its strength says."""

    def apply(text: str, strength: float, others: OtherStories, rng: random.Random) -> str:
        lines, passed = list[str](), 0.0
        for line in text.splitlines():
            words = list[str]()
            for word in line.split():
                passed += strength
                words += changed(word, others, rng) if passed >= 1 else [word]
                passed %= 1
            lines.append(" ".join(words))
        return "\n".join(lines)

    return apply


def replace_word(word: str, others: OtherStories, rng: random.Random) -> Sequence[str]:
    """Another word, of another story."""
    return [others.draw(rng, {strip_signs(word).casefold()}) or word]


def add_filler(word: str, others: OtherStories, rng: random.Random) -> Sequence[str]:
    """The word, and after it one of another story."""
    return [word, *filter(None, [others.draw(rng, frozenset())])]


def leave_out(word: str, others: OtherStories, rng: random.Random) -> Sequence[str]:
    """No word."""
    return []


def inflect(word: str, others: OtherStories, rng: random.Random) -> Sequence[str]:
    """The word with the ending of another one."""
    core, other = strip_signs(word), others.draw(rng, frozenset()) or ""
    return [word.replace(core, core[: max(len(core) - 1, 2)] + other[-2:], 1)] if core else [word]


def write_in_latin(word: str, others: OtherStories, rng: random.Random) -> Sequence[str]:
    """The word in Latin letters, as writers spell in chats: long vowels, v, ph, sh and z in one of several ways."""
    letters, written = [*word, " "], ""
    for letter, following in pairwise(letters):
        offset, after = _find_offset(letter), _find_offset(following)
        if offset is None:
            written += letter
        elif offset in LATIN_CONSONANTS:
            written += rng.choice(LATIN_CONSONANTS[offset])
            is_followed_by_a = after in LATIN_CONSONANTS or after in LATIN_SIGNS
            written += "a" if is_followed_by_a and after != VIRAMA else ""
        elif VOWEL_SIGN <= offset < VIRAMA:
            written += rng.choice(LATIN_VOWELS.get(offset - VOWEL_SIGN + INDEPENDENT, ("e",)))
        elif offset not in {VIRAMA, NUKTA}:
            written += rng.choice(LATIN_VOWELS.get(offset) or LATIN_SIGNS.get(offset) or ("",))
    return [written]


def _find_offset(letter: str) -> int | None:
    """The place of a letter in the block of its script; None for a letter of no script that shares the layout."""
    return ord(letter) % BLOCK_SIZE if BLOCKS.start <= ord(letter) < BLOCKS.stop else None


def write_some_in_latin(text: str, strength: float, others: OtherStories, rng: random.Random) -> str | None:
    """Write that share of the words in Latin letters, and replace a tenth of all words; None for a text in Latin."""
    if others.language == "ENGLISH":
        return None
    in_latin = disguise_words(write_in_latin)(text, strength, others, rng)
    return disguise_words(replace_word)(in_latin, 0.1, others, rng)


def misread(text: str, strength: float, others: OtherStories, rng: random.Random) -> str:
    """Replace that share of the letters by others of the text, as a scanner misreads them."""
    letters = [letter for letter in text if letter.isalpha()]
    return "".join(rng.choice(letters) if letter.isalpha() and rng.random() < strength else letter for letter in text)


def shuffle_words(text: str, strength: float, others: OtherStories, rng: random.Random) -> str:
    """Shuffle the words within groups: of two words at a strength of a half, of three at two thirds, and so on."""
    words, size = text.split(), round(1 / (1 - strength))
    groups = (words[at : at + size] for at in range(0, len(words), size))
    return " ".join(word for group in groups for word in rng.sample(group, len(group)))


def paraphrase(text: str, strength: float, others: OtherStories, rng: random.Random) -> str:
    """Put a synonym in place of that share of the words, each time the same one, and exchange half of the clauses."""
    words = text.split()
    synonyms = {word: others.draw(rng, {word.casefold()}) for word in sorted(set(words)) if rng.random() < strength}
    written = [synonyms.get(word) or word for word in words]
    clauses = [written[at : at + CLAUSE_WORDS] for at in range(0, len(written), CLAUSE_WORDS)]
    for at in range(0, len(clauses) - 1, 2):
        if rng.random() < 0.5:
            clauses[at], clauses[at + 1] = clauses[at + 1], clauses[at]
    return " ".join(word for clause in clauses for word in clause)


DISGUISES = (
    Disguise("words replaced", (0.25, 1 / 3, 0.5), disguise_words(replace_word)),
    Disguise("words inflected", (0.25, 1 / 3, 0.5), disguise_words(inflect)),
    Disguise("fillers added after words", (0.25, 0.5, 1.0), disguise_words(add_filler)),
    Disguise("words left out", (0.25, 1 / 3, 0.5), disguise_words(leave_out)),
    Disguise("words shuffled in groups", (0.5, 2 / 3, 0.75), shuffle_words),
    Disguise("synonyms, and clauses exchanged", (0.2, 0.35, 0.5), paraphrase),
    Disguise("in Latin letters, a tenth replaced", (0.25, 0.5, 1.0), write_some_in_latin),
    Disguise("letters misread", (0.02, 0.05, 0.1, 0.2), misread),
)
DISGUISED_EDITS = tuple(edit for disguise in DISGUISES for edit in disguise.list_edits())
