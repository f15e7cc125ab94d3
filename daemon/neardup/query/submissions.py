"""Stores submitted stories as a listing would, beside any run, and forgets stories.

Only the ledger is written.  The process that holds its lock brings the indexes in step; until then lookups find the
latest stories in the ledger.
"""

import asyncio
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from neardup.config import Detection
from neardup.core.columns import Outcomes
from neardup.core.fingerprint.version import algorithm
from neardup.core.languages import Languages
from neardup.core.page import Page, PageStory, extract_story
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import cut_opening, find_title
from neardup.core.text.scripts import find_script_of_most
from neardup.core.verify.text import Text
from neardup.errors import Forgotten, Misuse, TooLarge
from neardup.ledger import Do, Ledger, candidates, stories, submissions
from neardup.ledger.submissions import Stored, Submitted
from neardup.nomination.lookup import find_unseen, make_matches
from neardup.pages.text_cache import Texts
from neardup.pipeline import submitted_pages
from neardup.pipeline.verifier import Verifier, count_assessed
from neardup.pipeline.worker import check_label
from neardup.pipeline.writer import count_outcomes
from neardup.query.check import Assessed, Checker, CheckResult, Examined, Submission, exchange_sides
from neardup.records import Assessment, Candidate, Fingerprinted, Story
from neardup.source.parse import MAX_ID, check_path, make_printable


class Submissions:
    """Checks, stores and forgets stories one at a time; long-lived, and safe for concurrent calls.

    `checker` and `texts` are those of the same ledger, which `ledger` writes.  A page of more than `max_bytes` is not
    kept.  `languages` are those that stories may be labelled with.  `write` calls other work on the ledger.
    """

    def __init__(
        self,
        checker: Checker,
        ledger: Ledger,
        texts: Texts,
        detection: Detection,
        max_bytes: int,
        *,
        languages: Languages,
    ) -> None:
        self.checker = checker
        self.write: Do = ledger.do
        self._ledger = ledger
        self._texts = texts
        self._detection = detection
        self._max_bytes = max_bytes
        self._languages = languages

    async def put(
        self,
        submission: Submission,
        page: bytes | None,
        path: str | None = None,
        *,
        restore: bool = False,
        deadline: float | None = None,
    ) -> CheckResult:
        """Check a story and store it; a second call with the same story changes nothing, and has the same result.

        `page` is that from which the text was read, None for a text; it is kept until a listing says where the page is,
        unless `path`, below content.url, says it already.  `restore` stores a forgotten story too.  After `deadline`
        seconds the check answers with what is there, and what is missing is looked up later.  Raises Misuse for a story
        without an id, for a path that is not below content.url, or for a text that cannot be kept, TooLarge, Forgotten,
        and as `Checker.check`.
        """
        story = _make_story(submission, path)
        until = None if deadline is None else asyncio.get_running_loop().time() + deadline
        if not restore:
            await self._ledger.do(stories.refuse_forgotten, story.id)
        story, text = await self._ledger.do(submissions.complete, story), submission.text
        submission = replace(submission, author_id=story.author_id, published_at=story.published_at)
        kept = await asyncio.to_thread(_choose_page, page, text, self._max_bytes)
        examined = await self.checker.examine(submission, deadline=_measure_rest(until))
        kept_path = ""
        if path is None:
            kept_path = await asyncio.to_thread(submitted_pages.write, self._ledger.path, story.id, kept)
        title = find_title(kept.body, None) if not kept.is_text else None
        marks = text.marks + check_label(story.language, find_script_of_most(text.written), self._languages)
        named = title or cut_opening(text.written)
        outcome = Fingerprinted(story, text.fingerprint, None, named, marks, text_sha256=text.sha256)
        try:
            stored = await self._store(outcome, text, kept_path, examined, restore=restore)
        except Forgotten:  # meanwhile
            await asyncio.to_thread(submitted_pages.remove, self._ledger.path, kept_path)
            raise
        # What a check leaves out, the story's own text on record, is the text that was submitted.
        if not stored.unseen.ids and not stored.unseen.by_passages:
            return replace(examined.result, left_out=None)
        await self._verify_rest(story.id, until)
        left = _measure_rest(until)
        if left is not None and left <= 0:
            reasons = (*examined.result.reasons, "there was no time for the stories that were stored meanwhile")
            return replace(examined.result, estimated=True, reasons=reasons, left_out=None)
        return replace(await self.checker.check(submission, deadline=left), left_out=None)

    async def _store(
        self, outcome: Fingerprinted, text: Text, page: str, examined: Examined, *, restore: bool
    ) -> Stored:
        nominated = examined.nominated
        submitted = Submitted(
            outcome,
            page,
            partial(submitted_pages.is_kept, self._ledger.path),
            make_matches(
                outcome.story.id, outcome.story.language, self._detection, nominated.whole, nominated.by_passages
            ),
            [_order_pair(pair, assessment) for pair, assessment in examined.assessed],
            partial(find_unseen, probe=examined.probe, seen=examined.seen, detection=self._detection),
        )
        stored = await self._ledger.do(submissions.commit, submitted, algorithm(), restore=restore)
        self._texts.keep(text.keep_compared())
        count_outcomes(Outcomes.of([stored.outcome]))
        count_assessed(examined.assessed, stored.flagged)
        assert isinstance(stored.outcome.story, Story)
        for unused in {page, stored.path_before} - {stored.outcome.story.path}:
            await asyncio.to_thread(submitted_pages.remove, self._ledger.path, unused)
        return stored

    async def _verify_rest(self, story_id: int, until: float | None) -> None:
        """Verify the pairs of a story that its check did not see; those that take too long are verified by a run."""
        verifier = Verifier(self._ledger, self._detection, algorithm(), self._texts, lambda *_: None)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await verifier.verify(await self._ledger.do(candidates.list_pending_of_stories, [story_id]))

    async def forget(self, story_id: int) -> bool:
        """Remove a story, and keep listings from bringing it back; returns whether the ledger held anything of it.

        Nothing is kept of a story that it did not hold.
        """
        known, path = await self._ledger.do(stories.forget, story_id, known_only=True)
        await asyncio.to_thread(submitted_pages.remove, self._ledger.path, path)
        return known


def _measure_rest(until: float | None) -> float | None:
    """The seconds until a time of the event loop, negative afterwards."""
    return None if until is None else until - asyncio.get_running_loop().time()


def _make_story(submission: Submission, path: str | None) -> Story:
    """The story as a listing would give it.  Raises Misuse."""
    if submission.story_id is None:
        raise Misuse("a story to be stored needs an id")
    if not 0 <= submission.story_id <= MAX_ID:
        raise Misuse(f"the id {submission.story_id} is not an integer from 0 to {MAX_ID}")
    try:
        return Story(
            submission.story_id,
            submission.language,
            None if path is None else check_path(path),
            author_id=make_printable(submission.author_id),
            title=make_printable(submission.title),
            published_at=submission.published_at,
            name=submission.name,
            series_id=make_printable(submission.series_id),
        )
    except ValueError as error:
        raise Misuse(str(error)) from None


def _order_pair(pair: Candidate, assessment: Assessment | None) -> Assessed:
    """The pair with the lower id first, and its assessment accordingly."""
    if pair.a.id < pair.b.id:
        return pair, assessment
    return Candidate(pair.b, pair.a), exchange_sides(assessment)


def _choose_page(page: bytes | None, text: Text, max_bytes: int) -> Page:
    """What to keep of a submission: the page from which its text was read, or else the text.

    A page is not parsed again: hostile markup can keep a parser busy for hours, and this process is to serve others.
    Raises TooLarge for a text of more bytes, Misuse for a text that reads as another one.
    """
    if page is not None and len(page) <= max_bytes:
        return Page(page)
    kept = Page(text.written.encode("utf-8", "replace"), is_text=True)
    if len(kept.body) > max_bytes:
        raise TooLarge("larger than content.max_bytes")
    found = extract_story(kept, Extraction())
    if not (isinstance(found, PageStory) and found.text.normalised == text.normalised):
        raise Misuse("the text has so many unprintable characters that it is no text")
    return kept
