"""The records of pairs of stories, from the candidate to the verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from neardup.records import Language

Spans = npt.NDArray[np.int32]  # (n, 2): words [start, end) of a text, ascending and disjoint
NO_SPANS: Spans = np.empty((0, 2), np.int32)
# Equal words of a copied block, at least: one pair in a thousand of unrelated stories has a block of 12 to 19, one in
# 300 one of 8 to 19.
MIN_BLOCK = 12


@dataclass(frozen=True, slots=True)
class PairedStory:
    """One story of a candidate pair, with what is needed to verify the pair and to read the text again."""

    id: int
    language: Language
    path: str | None
    text_hash: bytes
    simhash: bytes
    signature: bytes | None
    words: int
    shingles: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A nominated pair, `a.id` < `b.id`.  The thresholds, flags and counts of a pair are those of a's language."""

    a: PairedStory
    b: PairedStory

    @property
    def language(self) -> Language:
        """The language that the pair is filed under."""
        return self.a.language

    @property
    def is_of_one_language(self) -> bool:
        """Whether both stories are filed under the same language."""
        return self.a.language == self.b.language


Kind = str  # how two stories match: the name of a row of neardup.core.verify.tiers.TIERS


@dataclass(frozen=True, slots=True)
class Copied:
    """What two texts share, as `core.verify.alignment` finds it.

    - `words`: the equal words of all blocks, without repetitions: where a text repeats a passage, it counts once.
    - `common_words`: the equal words that were left out because they stand in a common passage.
    - `spans_a`, `spans_b`: the blocks in either text with the edits inside them, without common passages.
    - `longest_run`: the words of the longest run that both share; None if the alignment did not find it.
    """

    words: int
    common_words: int
    spans_a: Spans
    spans_b: Spans
    longest_run: int | None


@dataclass(frozen=True, slots=True)
class Signals:
    """The measurements of a pair, by which the tiers decide.

    `hamming` counts the bits in which the SimHashes differ.  `jaccard` and the containments compare the sets of
    shingles, from 0 to 1; `containment_a` is the share of a's shingles that b has.  If a text is missing, they are
    `estimated` from the signatures, or None without signatures.  For the tiers that compare skeletons they compare the
    sets of consonant grams instead.  `extra` has the further signals of a tier, by name.
    """

    hamming: int
    same_text: bool = False
    jaccard: float | None = None
    containment_a: float | None = None
    containment_b: float | None = None
    longest_run_words: int | None = None
    estimated: bool = False
    extra: Mapping[str, float] = field(default_factory=dict)

    @property
    def containment(self) -> float:
        """The larger containment, which is never below the Jaccard similarity; 0 if unknown."""
        return max(self.containment_a or 0.0, self.containment_b or 0.0)


class Verdict(StrEnum):
    """What a moderator says of a flagged pair.  The value of one that decides is the flag's status."""

    PLAGIARISM = "plagiarism"
    REPOST = "repost"  # the author's own
    QUOTATION = "quotation"
    TEMPLATE = "template"  # text that many stories share: a form, a prayer, a blurb
    NOT_SIMILAR = "not_similar"
    UNSURE = "unsure"  # asks another moderator
    REOPENED = "reopened"  # takes back the verdict before it; its note gives the reason


DECIDING = tuple(verdict for verdict in Verdict if verdict not in {Verdict.UNSURE, Verdict.REOPENED})


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """The result of verifying a pair; `kind` is None for a near miss.

    `spans_a` and `spans_b` are the copied words of either text, as `core.verify.alignment` finds them; none if a text
    was missing.
    """

    kind: Kind | None
    signals: Signals
    spans_a: Spans = field(default_factory=lambda: NO_SPANS)
    spans_b: Spans = field(default_factory=lambda: NO_SPANS)
