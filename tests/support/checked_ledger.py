"""A ledger with its indexes and the texts of its stories, which texts are checked against."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from neardup.config import Content, Detection
from neardup.core.columns import Outcomes
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.page import PageStory, extract_story, make_comparable, prepare
from neardup.core.text.extraction import Extraction
from neardup.core.text.normalize import tokenize
from neardup.core.verify.text import Text
from neardup.index.passages.index import PassageIndex
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Ledger, files, stories
from neardup.pages.results import ReadFailed, TextResult
from neardup.pages.store import Pages
from neardup.pipeline.index_sync import admit_version, catch_up
from neardup.pipeline.passage_sync import PassageSync, open_passages
from neardup.pipeline.upkeep import Upkeep
from neardup.query.check import Checker, CheckResult, Submission
from neardup.query.submissions import Submissions
from neardup.records import Dead, Fingerprinted, Kind, Language, Story

from tests.support.builders import fetch_page, texts_by
from tests.support.languages import TEXTS

VERSION = fingerprint_version.version()
MAX_BYTES = 100_000  # of a submitted page


def words_of(language: Language, name: str, n: int = 200) -> list[str]:
    """Words of a language that no text of another name has."""
    words = [word.decode() for word in tokenize(TEXTS[language])]
    return [f"{words[k % len(words)]}{name}{k}" for k in range(n)]


def text_of(words: list[str]) -> Text:
    result = prepare(Text(" ".join(words)))
    assert isinstance(result, Text)
    return result


class CheckedLedger:
    """A ledger, its indexes, and the texts of its stories; it counts the reads of each.

    The pages of submitted stories are files beside the ledger; `texts` are those of the other stories.
    """

    def __init__(self, ledger: Ledger, passages: PassageIndex, detection: Detection) -> None:
        self.ledger = ledger
        self.index = SqliteIndex(ledger.path, detection.bandings(LANGUAGES))
        self.texts: dict[int, str] = {}
        self.reads: Counter[int] = Counter()
        self.is_available = True
        self.read = self._read
        self._pages = Pages(Content(url=f"file:{ledger.path.parent}"), files.name_submitted_folder(ledger.path))
        texts = texts_by(self._to_compare)
        self.checker = Checker(self.index, passages, ledger, texts, detection, VERSION)
        self.upkeep = Upkeep(self.index, PassageSync(passages, ledger), ledger, texts, detection, VERSION)
        self.submissions = Submissions(self.checker, ledger, texts, detection, MAX_BYTES, languages=SHIPPED)

    async def _to_compare(self, story: Story) -> TextResult:
        return await self.read(story)

    async def _read(self, story: Story) -> TextResult:
        self.reads[story.id] += 1
        if not self.is_available:
            return ReadFailed(Dead.STORE_ERROR, "no answer")
        if story.path is None:
            return make_comparable(Text(self.texts[story.id]))
        page = fetch_page(self._pages, story.path)
        assert page is not None
        found = extract_story(page, Extraction())
        return make_comparable(found.text) if isinstance(found, PageStory) else found

    async def add(
        self,
        language: Language,
        story_id: int,
        words: list[str],
        *,
        author: str | None = None,
        published_at: int | None = None,
    ) -> None:
        text = " ".join(words)
        self.texts[story_id] = text
        story = Story(story_id, language, author_id=author, title=f"title {story_id}", published_at=published_at)
        outcome = Fingerprinted(story, fingerprint(tokenize(text)), None)
        await self.ledger.do(stories.commit, stories.Batch(Outcomes.of([outcome]), [], 1, {}, None))

    async def index_all(self) -> None:
        await admit_version(self.index, self.ledger, VERSION)
        await catch_up(self.index, self.ledger, VERSION)

    async def put(
        self, language: Language, story_id: int, words: list[str], *, author: str | None = None, restore: bool = False
    ) -> CheckResult:
        text = text_of(words)
        page = f"<title>title {story_id}</title><p>{text.written}</p>".encode()
        submission = Submission(language, text, story_id, author_id=author)
        return await self.submissions.put(submission, page, restore=restore)

    async def flagged(self) -> dict[tuple[int, int], Kind]:
        """The open flags: the pairs, the lower id first, with their kinds."""
        query = "SELECT a, b, kind FROM flags WHERE status = 'open'"
        return {(a, b): kind for a, b, kind in await self.ledger.do(lambda db: db.execute(query).fetchall())}

    async def check(
        self,
        words: list[str],
        language: Language,
        *,
        author: str | None = None,
        published_at: int | None = None,
        deadline: float | None = None,
    ) -> CheckResult:
        submission = Submission(language, text_of(words), author_id=author, published_at=published_at)
        return await self.checker.check(submission, deadline=deadline)


@asynccontextmanager
async def checked_ledger(folder: Path, detection: Detection | None = None) -> AsyncIterator[CheckedLedger]:
    with closing(Ledger(folder / "neardup.db")) as ledger, closing(await open_passages(ledger)) as passages:
        made = CheckedLedger(ledger, passages, detection or Detection())
        try:
            yield made
        finally:
            await made.index.close()
