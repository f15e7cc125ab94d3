"""What the processes of a scan do with pairs: they verify them by the texts in the scratch files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from cachetools import LRUCache

from neardup.config import Detection
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.text.scripts import script_of_most
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.scores import ComparedPair, assess_all
from neardup.core.verify.shingled import Shingled, shingled_text
from neardup.core.verify.skeletons import Grams, distinct_grams
from neardup.pages.text_cache import CACHE_BYTES
from neardup.query.pairs_in_memory import Pair
from neardup.records import Assessment, Candidate, Language, PairedStory
from neardup.scan.reading import KeptText, Scratch

HELD_BYTES = CACHE_BYTES // 2  # of texts that are compared at a time
GRAM_BYTES = 2  # a byte of text, at most: half of the letters of Latin are consonants, and a gram has 4 bytes


@dataclass(frozen=True)
class ComparedText(Shingled):
    """A text that is compared many times in a row: the grams of its skeleton and its script are kept."""

    @cached_property
    def skeleton_grams(self) -> Grams:
        return distinct_grams(self.normalised)

    @cached_property
    def script(self) -> str | None:
        return script_of_most(self.normalised.decode(errors="replace"))

    @property
    def nbytes(self) -> int:
        """The size in memory, of the grams too."""
        return super().nbytes + GRAM_BYTES * len(self.normalised)


class Verifier:
    """Verifies pairs for one process."""

    def __init__(self, detection: Detection, scratches: Sequence[Scratch]) -> None:
        self._detection = detection
        self._scratches = scratches
        self._stories: Sequence[PairedStory] = ()
        self._kept: Sequence[KeptText] = ()
        self._common: Mapping[Language, PassageHashes] = {}
        self._cache: LRUCache[int, ComparedText] = LRUCache(CACHE_BYTES, attrgetter("nbytes"))

    def begin(
        self,
        stories: Sequence[PairedStory],
        kept: Sequence[KeptText],
        common: Mapping[Language, PassageHashes],
    ) -> None:
        """Take the stories to compare, their texts, and the hashes of common passages, by language."""
        self._stories, self._kept, self._common = stories, kept, common

    def verify(self, pairs: Sequence[Pair]) -> list[tuple[Pair, Assessment]]:
        """The pairs of places that are copies or near misses."""
        found, common_of = list[tuple[Pair, Assessment]](), lambda language: self._common.get(language, NO_HASHES)
        for some in self._fitting(pairs):
            assessed = assess_all([compared for _, compared in some], self._detection.of, common_of)
            for (pair, _), assessment in zip(some, assessed, strict=True):
                if assessment is not None:
                    found.append((pair, assessment))
        return found

    def _fitting(self, pairs: Sequence[Pair]) -> Iterator[list[tuple[Pair, ComparedPair]]]:
        """The pairs with their texts, as many at a time as have HELD_BYTES of texts, at least one."""
        some, size, held = list[tuple[Pair, ComparedPair]](), 0, set[int]()
        for pair in pairs:
            if size > HELD_BYTES:
                yield some
                some, size, held = [], 0, set()
            sides = Candidate(*(self._stories[place] for place in pair))
            if sides.a.text_hash == sides.b.text_hash:
                some.append((pair, ComparedPair(sides, None, None)))
                continue
            a, b = map(self._text, pair)
            size += sum(text.nbytes for place, text in zip(pair, (a, b), strict=True) if place not in held)
            held.update(pair)
            some.append((pair, ComparedPair(sides, a, b)))
        yield some

    def _text(self, place: int) -> ComparedText:
        if (text := self._cache.get(place)) is None:
            kept = self._kept[place]
            shingled = shingled_text(self._scratches[kept.file].load(kept))
            assert shingled is not None  # for it has a fingerprint
            text = ComparedText(shingled.words, shingled.shingles, shingled.normalised, shingled.skeleton_hashes)
            if text.nbytes <= CACHE_BYTES:
                self._cache[place] = text
        return text
