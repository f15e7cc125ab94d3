"""The corpus of an evaluation: a sample of the configured source, and copies and longer works made of its stories."""

import asyncio
import csv
import heapq
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import xxhash
from msgspec import Struct

from neardup.app import open_readers
from neardup.config import Config
from neardup.core.verify.text import Text
from neardup.errors import Fatal
from neardup.insights.disguises import DISGUISED_EDITS
from neardup.insights.edits import EDITS, WORKS, Edit, OtherStories, Work, strip_signs, write_plain
from neardup.pages.reader_pool import ReaderPool
from neardup.records import Language, Story
from neardup.source import list_rows
from neardup.source.listings import open_source

TRIED = 20  # stories drawn for each one wanted, because many may be too short
COMMON_SHARE = 0.2  # a word that occurs in a larger share of the stories is not a name


class Original(Struct, frozen=True):
    """A story and its text."""

    id: int
    language: Language
    text: str


async def sample(
    config: Config, stories: int, min_words: int, seed: int, show_listed: Callable[[int], None]
) -> dict[Language, list[Original]]:
    """Draw `stories` stories of each language with at least `min_words` words.

    The same listing and seed give the same stories.  `show_listed` is called with the number of stories listed so far.
    Raises Fatal if no language has two such stories.
    """
    out = {}
    async with aclosing(open_readers(config)) as pool:
        for language, drawn_stories in (await _draw(config, stories * TRIED, seed, show_listed)).items():
            originals = await _read(pool, drawn_stories, stories, min_words, config.run.workers)
            if len(originals) > 1:  # an edit takes words from another story
                out[language] = originals
    if not out:
        raise Fatal(f"no language has two readable stories of at least {min_words} words: give a lower --min-words")
    return out


async def _draw(
    config: Config, limit: int, seed: int, show_listed: Callable[[int], None]
) -> dict[Language, Sequence[Story]]:
    """Draw up to `limit` stories of each language, those whose ids have the lowest hashes: a random sample."""
    heaps: dict[Language, list[tuple[int, int, Story]]] = {language: [] for language in config.registry}
    count = 0
    async for story in list_rows(open_source(config)):
        count += 1
        show_listed(count)
        if isinstance(story, Story):
            heap = heaps[story.language]
            rank = xxhash.xxh3_64_intdigest(f"{seed}:{story.id}".encode())
            heapq.heappush(heap, (-rank, -count, story))  # negated: heappop removes the highest rank
            if len(heap) > limit:
                heapq.heappop(heap)
    # If a story is listed twice, its last row counts.
    return {
        language: list({story.id: story for *_, story in sorted(heap, reverse=True)}.values())
        for language, heap in heaps.items()
        if heap
    }


async def _read(
    pool: ReaderPool, drawn_stories: Sequence[Story], wanted: int, min_words: int, step: int
) -> list[Original]:
    """The first `wanted` drawn stories that have enough words, reading `step` pages at a time."""

    async def read(story: Story) -> Original | None:
        result = await pool.read_text(story)
        if not isinstance(result, Text) or len(result.word_hashes) < min_words:
            return None
        return Original(story.id, story.language, result.written)

    originals: list[Original] = []
    for start in range(0, len(drawn_stories), step):
        originals += filter(None, await asyncio.gather(*map(read, drawn_stories[start : start + step])))
        if len(originals) >= wanted:
            break
    return originals[:wanted]


Copy = Edit | Work

COPIES: Sequence[Copy] = (*EDITS, *DISGUISED_EDITS, *WORKS)


class PlantedStory(Struct, frozen=True):
    """One story of the corpus.

    `origins` are the numbers of the originals whose text it has, several for a work.  `copy` says how it was made; it
    is None for an original.
    """

    origins: tuple[int, ...]
    copy: Copy | None


class Corpus(Struct, frozen=True):
    """The stories of one language: an original, then its copies, then the next original, and so on; then the works.

    The id of a story is `first` plus its position in `stories`.  `donors` has for each original the originals from
    which the foreign text of its copies is taken.
    """

    originals: Sequence[Original]
    stories: Sequence[PlantedStory]
    donors: Sequence[frozenset[int]]
    first: int = 0

    @property
    def ids(self) -> range:
        return range(self.first, self.first + len(self.stories))

    def describe(self, place: int) -> tuple[int, str | None]:
        """The id of a story's original in the source, of a work its first chapter's, and the name of the copy."""
        story = self.stories[place]
        return self.originals[story.origins[0]].id, story.copy.name if story.copy else None

    def share_origin(self, a: int, b: int) -> bool:
        """Whether two stories, given by their positions, have text of the same original."""
        return not set(self.stories[a].origins).isdisjoint(self.stories[b].origins)


def plant(originals: Sequence[Original], copies: Sequence[Copy], seed: int, first: int = 0) -> tuple[Corpus, list[str]]:
    """Copy each original by each edit that can be applied to it, and make works of the originals.

    Returns the corpus and its texts, in the order of its stories.  Needs at least two originals.
    """
    words = [original.text.split() for original in originals]
    common = _find_common(words)
    stories: list[PlantedStory] = []
    texts: list[str] = []
    donors = []
    for origin, original in enumerate(originals):
        donated = _choose_donors(words, origin, _make_random(seed, original, "donors"))
        others = OtherStories(
            language=original.language,
            stories=words[:origin] + words[origin + 1 :],
            host=words[donated[0]],
            foreign=[word for donor in donated for word in words[donor]],
            common=common,
        )
        stories.append(PlantedStory((origin,), None))
        texts.append(original.text)
        for edit in (copy for copy in copies if isinstance(copy, Edit)):
            text = edit.apply(original.text, others, _make_random(seed, original, edit.name))
            if text is not None:
                stories.append(PlantedStory((origin,), edit))
                texts.append(text)
        donors.append(frozenset(donated))
    for work in (copy for copy in copies if isinstance(copy, Work)):
        for chapters in work.draw(len(originals), _make_random(seed, originals[0], work.name)):
            stories.append(PlantedStory(chapters, work))
            texts.append("\n".join(originals[n].text for n in chapters))
    return Corpus(originals, stories, donors, first), texts


def _make_random(seed: int, original: Original, purpose: str) -> random.Random:
    return random.Random(f"{seed}:{original.id}:{purpose}")  # noqa: S311 - not for cryptography


def _find_common(words: Sequence[Sequence[str]]) -> frozenset[str]:
    """The casefolded words that occur in at least two of the stories, and in more than COMMON_SHARE of them."""
    counts = Counter(word for story in words for word in {strip_signs(word).casefold() for word in story})
    return frozenset(word for word, n in counts.items() if n > max(1.0, COMMON_SHARE * len(words)))


def _choose_donors(words: Sequence[Sequence[str]], origin: int, rng: random.Random) -> list[int]:
    """Choose a random story at least as long as the original, or several if there is none."""
    wanted = len(words[origin])
    others = [n for n in range(len(words)) if n != origin]
    long = [n for n in others if len(words[n]) >= wanted]
    if long:
        return [rng.choice(long)]
    rng.shuffle(others)
    donors: list[int] = []
    while sum(len(words[n]) for n in donors) < wanted:
        donors.append(others[len(donors) % len(others)])
    return donors


def write_manifest(corpora: Sequence[Corpus], folder: Path) -> None:
    """Write the manifest of some corpora, whose pages are `folder`/html/<id>.html."""
    with (folder / "manifest.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "language", "path"])
        for corpus in corpora:
            rows.writerows([n, corpus.originals[0].language, f"{n}.html"] for n in corpus.ids)


def write_pages(corpus: Corpus, texts: Sequence[str], folder: Path) -> None:
    """Write a page for each story."""
    pages = folder / "html"
    pages.mkdir(exist_ok=True)
    for n, story, text in zip(corpus.ids, corpus.stories, texts, strict=True):
        page = (story.copy.page if story.copy else write_plain)(text)
        (pages / f"{n}.html").write_text(page, encoding="utf-8", errors="replace")
