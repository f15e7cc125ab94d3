"""The work on listed stories: to skip those that are known to be unchanged, and to read the pages of the others.

Each row has one outcome.  In the end it is judged whether the run could read its stories: a wrong setting must not look
like a run without trouble.
"""

import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from neardup.core.columns import NONE_MADE, FingerprintedStories, Key, ListedBlock, Outcomes, StoryColumns
from neardup.core.languages import Languages
from neardup.core.page import PageFingerprinted, Unreadable, skip_marks
from neardup.errors import Fatal, NeardupError
from neardup.ledger import stories
from neardup.pages.results import NotModified, PageResult, PagesRead, ReadFailed, ReadPages, make_crash, make_results
from neardup.pipeline.summary import HARMLESS, Counts, RunSummary
from neardup.records import (
    SUBMITTED,
    BadRow,
    Dead,
    DeadLettered,
    Language,
    ListedRow,
    Mark,
    MarkReason,
    Marks,
    Outcome,
    Skip,
    Skipped,
    StoredVersion,
    Story,
)
from neardup.telemetry.log import log

Known = StoredVersion | Skip  # Skip.FORGOTTEN for a forgotten story
Deliver = Callable[[Outcomes], Awaitable[None]]
LEAST_SHARE = 0.01  # of the stories that had to be read; with less, a setting is wrong
FEW = 10  # stories of a partial listing, such as one quiet day: their pages may all be gone
# Reason -> the settings to look at, which are those of the platform's stories or `of` the reference.
SETTINGS: dict[str, str] = {
    Skip.MISSING: "{of}content.url, {of}content.key and the paths that the listing names",
    Skip.EMPTY: "{of}content.url, {of}extract.body and {of}extract.strip",
    Skip.NOT_TEXT: "{of}content.url and the paths that the listing names",
    Skip.NO_BODY: "{of}extract.body",
    Skip.TOO_SHORT: "{of}extract.body and {of}extract.strip",
    Skip.OVER_BUDGET: "the log lines before this one",
    Dead.BAD_ROW: "the listing that [{listing}] names",
    Dead.BAD_ID: "the column id of the listing",
    Dead.BAD_LANGUAGE: "the column language of the listing, and [languages]",
    Dead.BAD_TIME: "the time columns of the listing",
    Dead.BAD_PATH: "the column path of the listing",
    Dead.DUPLICATE_ID: "the columns id and path of the listing, which has several pages under one id",
    Dead.STORE_ERROR: "{of}content.url and {of}content.endpoint",
    Dead.FORBIDDEN: "{of}content.url and the credentials",
    Dead.CRASHED: "the log lines before this one",
    Dead.QUARANTINED: "the log lines before this one, and `neardup retry KEY`",
}
EMPTY_LISTING = "the listing has no stories; look at source.manifest, or source.backfill_sql for Athena"


class Jobs(Struct, frozen=True):
    """Listed rows in their order: stories, or one row that describes none.

    `known` is what the ledger holds for some of the stories in their languages, by id.
    """

    stories: StoryColumns
    bad: tuple[BadRow, ...] = ()
    known: Mapping[int, StoredVersion] = field(default_factory=dict)

    @classmethod
    def of(cls, listed: ListedBlock) -> Self:
        return cls(StoryColumns.of(()), (listed,)) if isinstance(listed, BadRow) else cls(listed)

    @property
    def keys(self) -> Sequence[Key]:
        return self.stories.ids if not self.bad else [row.key for row in self.bad]

    @property
    def positions(self) -> Sequence[int]:
        """The place of each in the listing."""
        return self.stories.positions if not self.bad else [row.position for row in self.bad]

    def __len__(self) -> int:
        return len(self.stories) + len(self.bad)

    def __getitem__(self, rows: slice) -> Self:
        return replace(self, stories=self.stories[rows], bad=self.bad[rows])


class ListedStories:
    """The stories on record that one listing has named so far.

    `last_change` is the ledger's last before the listing began: a story with a later number was recorded because of the
    listing.  Of the others there is one bit each, so memory is flat.
    """

    def __init__(self) -> None:
        self.last_change = 0
        self._bits = bytearray()

    def add(self, story: Story, known: StoredVersion) -> bool:
        """Add a listed story; returns whether the listing has named it before, with another page.

        A row with another date is another version of the story, whose page may have moved.
        """
        is_second = known.number > self.last_change or self._set_bit(known.number)
        is_version = None not in {story.updated_at, known.updated_at} and story.updated_at != known.updated_at
        if not is_second or is_version or (known.path or "").startswith(SUBMITTED):
            return False
        return (story.path or story.language) != (known.path or known.language)

    def _set_bit(self, number: int) -> bool:
        """Set the bit of a number; returns whether it was set before."""
        place, bit = number >> 3, 1 << (number & 7)
        self._bits.extend(bytes(max(place + 1 - len(self._bits), 0)))
        was_set = bool(self._bits[place] & bit)
        self._bits[place] |= bit
        return was_set


class Worker(Struct):
    """Turns listed rows into outcomes.

    `load_known` loads what the ledger holds for story ids; `read` reads pages, unless they still have the given ETags;
    `languages` are those that stories may be labelled with.  `listed` is of the listing that is read.  A page that
    `is_retried` is read though its story has the same date on record, perhaps of another page.
    """

    load_known: Callable[[Sequence[int]], Awaitable[Mapping[int, Known]]]
    read: ReadPages
    languages: Languages
    listed: ListedStories = field(default_factory=ListedStories)
    is_retried: bool = False

    async def admit(self, rows: Jobs) -> tuple[Jobs, Outcomes]:
        """The stories whose pages must be read, and the outcomes of the other rows.  Raises as `load_known` does."""
        if rows.bad:
            return rows[:0], Outcomes(NONE_MADE, [DeadLettered(row, row.reason, row.error) for row in rows.bad])
        known, settled = await self.load_known(rows.stories.ids), self._refuse_unknown_languages(rows.stories)
        if not known and not settled:
            return rows, Outcomes(NONE_MADE, [])
        versions = dict[int, StoredVersion]()
        for n, story_id in enumerate(rows.stories.ids):
            if n not in settled and (version := known.get(story_id)) is not None:
                story = rows.stories.story(n)
                if (outcome := self._decide_unread(story, version)) is not None:
                    settled[n] = outcome
                elif isinstance(version, StoredVersion) and version.language == story.language:
                    versions[story_id] = version
        left = [n for n in range(len(rows)) if n not in settled]
        return Jobs(rows.stories.take(left), known=versions), Outcomes(NONE_MADE, list(settled.values()))

    def _refuse_unknown_languages(self, listed: StoryColumns) -> dict[int, Skipped | DeadLettered]:
        """The outcomes, by place, of dead letters in languages that the configuration had when they were listed."""
        unknown = set(listed.languages).difference(self.languages)
        return {
            n: DeadLettered(listed.story(n), Dead.BAD_LANGUAGE, f"unknown language {language!r}")
            for n, language in enumerate(listed.languages if unknown else ())
            if language in unknown
        }

    async def work(self, jobs: Jobs, deliver: Deliver) -> None:
        """Read the pages of stories and deliver their outcomes as they arrive; one that crashes is read once more.

        Raises only errors that end the whole run.
        """
        crashed = await self._read_once(jobs, deliver, is_last_try=False)
        if crashed:
            for story in crashed:
                log.warning("a story could not be processed; trying again", story=story.shown)
            await self._read_once(replace(jobs, stories=StoryColumns.of(crashed)), deliver, is_last_try=True)

    async def outcome(self, row: ListedRow) -> Outcome:
        """The outcome of one row.  Raises as `admit` and `work`."""
        found = list[Outcome]()

        async def keep(outcomes: Outcomes) -> None:
            found.extend(outcomes.objects())

        jobs, settled = await self.admit(Jobs.of(row if isinstance(row, BadRow) else StoryColumns.of([row])))
        await keep(settled)
        await self.work(jobs, keep)
        [made] = found
        return made

    def _decide_unread(self, story: Story, known: Known) -> Skipped | DeadLettered | None:
        """The outcome of a story whose page need not be read; None if it must be."""
        if isinstance(known, Skip):
            return Skipped(story, known, was_asked=False)
        shown = story.shown
        if known.name not in {None, story.name}:
            return DeadLettered(story, Dead.BAD_ID, f"the id {shown!r} has the number of the story {known.name!r}")
        if self.listed.add(story, known):
            pages = " and ".join(repr(page.path or f"of {page.language}") for page in (known, story))
            return DeadLettered(story, Dead.DUPLICATE_ID, f"the id {shown!r} is listed with two pages: {pages}")
        if known.updated_at is None or story.updated_at is None:
            return None
        if story.updated_at < known.updated_at:
            return Skipped(story, Skip.SUPERSEDED, was_asked=False)
        unchanged = story.updated_at == known.updated_at and story.language == known.language
        return Skipped(story, Skip.UNCHANGED, was_asked=False) if unchanged and not self.is_retried else None

    async def _read_once(self, jobs: Jobs, deliver: Deliver, *, is_last_try: bool) -> list[Story]:
        """Read pages, and return the stories that crashed; at the last try, that is their outcome instead."""
        unread, crashed = set(jobs.stories.ids), list[Story]()

        async def receive(read: PagesRead) -> None:
            ids, again = read.ids, list[Story]()
            if not is_last_try and (again := [story for story, result in read.others if _has_crashed(result)]):
                others = [(story, result) for story, result in read.others if not _has_crashed(result)]
                read = replace(read, others=others)
            outcomes = make_outcomes(read, jobs.known, self.languages) if read.ids else None
            unread.difference_update(ids)  # what has failed until here is named, and not lost
            crashed.extend(again)
            if outcomes is not None:
                await deliver(outcomes)

        known = jobs.known
        etags = [known[n].etag if n in known else None for n in jobs.stories.ids] if known else [None] * len(jobs)
        try:
            await self.read(jobs.stories, etags, receive)
        except NeardupError:
            raise
        except Exception as error:
            failed = [story for story in jobs.stories.stories() if story.id in unread]
            for story in failed:
                log.exception("a story could not be processed", story=story.shown)
            await receive(make_results([(story, make_crash(error)) for story in failed]))
        return crashed


def read_known(db: sqlite3.Connection, ids: Sequence[int]) -> dict[int, Known]:
    """What the ledger holds for these ids, for `Worker`."""
    return {**stories.read_stored_versions(db, ids), **dict.fromkeys(stories.find_forgotten(db, ids), Skip.FORGOTTEN)}


def make_outcomes(read: PagesRead, known: Mapping[int, StoredVersion], languages: Languages) -> Outcomes:
    """The outcomes of stories whose pages were read; `known` is what the ledger holds for some, in their languages."""
    listed, pages = read.stories, read.pages
    others = [make_outcome(story, result) for story, result in read.others]
    expected = {language: _find_script(languages, language) for language in set(listed.languages)}
    scripts = pages.scripts
    if scripts != [expected[language] for language in listed.languages]:
        for n, script in enumerate(scripts):
            pages.marks[n] += check_label(listed.languages[n], script, languages)
    titles: list[str | None] = [None] * len(listed)
    if None in listed.titles:
        titles = list(map(_choose_title, listed.titles, listed.paths, pages.titles, pages.openings))
    made = FingerprintedStories(listed, pages, titles)
    if known and (unchanged := _find_unchanged(known, made)):
        others += [Skipped(listed.story(n), Skip.UNCHANGED, pages.etags[n], marks=pages.marks[n]) for n in unchanged]
        made = made.take([n for n in range(len(made)) if n not in unchanged])
    return Outcomes(made, others)


def _find_unchanged(known: Mapping[int, StoredVersion], made: FingerprintedStories) -> set[int]:
    """The places of the stories that have the texts on record."""
    hashes = zip(made.stories.ids, made.pages.text_hashes, strict=True)
    pairs = ((n, known.get(story_id), text_hash) for n, (story_id, text_hash) in enumerate(hashes))
    return {n for n, version, text_hash in pairs if version is not None and version.text_hash == text_hash}


def make_outcome(story: Story, result: PageResult) -> Skipped | DeadLettered:
    """The outcome of a story whose page was read and yields no fingerprint."""
    match result:
        case NotModified():
            return Skipped(story, Skip.UNCHANGED)
        case Unreadable(Skip.MISSING):
            return Skipped(story, Skip.MISSING)
        case Unreadable(reason, marks):
            return Skipped(story, reason, marks=marks + skip_marks(reason))
        case ReadFailed(reason, error):
            return DeadLettered(story, reason, error)
        case PageFingerprinted():
            raise AssertionError("fingerprinted pages are in columns")


def check_label(language: Language, script: str | None, languages: Languages) -> Marks:
    """The mark of a story whose language is not written in `script`, that of most letters of its text."""
    if script is None or _find_script(languages, language) == script:
        return ()
    return (Mark(MarkReason.MISLABELLED, script.title()),)


def _find_script(languages: Languages, language: Language) -> str:
    """The script in which a language is written, as `core.text.scripts` names it."""
    return languages[language].script.upper().partition(" ")[0]


def _choose_title(listed: str | None, path: str | None, title: str | None, opening: str | None) -> str | None:
    """What names a story without a listed title: the page's title; else its listed path, or else its first words."""
    if listed is not None:
        return None
    return title or (opening if path is None else None)


def _has_crashed(result: PageResult) -> bool:
    return isinstance(result, ReadFailed) and result.reason is Dead.CRASHED


def refuse_unreadable(summary: RunSummary, *, whole_listing: bool) -> None:
    """Raise Fatal if the listing is empty or nearly none of its stories could be read.

    Unless the run saw the whole listing, it may be empty, and for fewer than FEW stories the run has a warning instead.
    So it has if nearly all stories of the whole listing are known: the rest may have been unreadable before.
    """
    counts = summary.counts
    if whole_listing and not counts.listed:
        raise Fatal(EMPTY_LISTING)
    if not is_nearly_nothing_read(counts):
        return
    why = describe_unread(counts, of_reference=summary.command == "reference")
    fewest = max(FEW, LEAST_SHARE * counts.listed) if whole_listing else FEW
    if counts.attempted >= fewest or (whole_listing and counts.attempted == counts.listed):
        raise Fatal(why)
    summary.warnings["reading"] = why
    log.warning("no story could be read", why=why)


def is_nearly_nothing_read(counts: Counts) -> bool:
    """Whether stories had to be read, and less than LEAST_SHARE of them could be."""
    return counts.readable < LEAST_SHARE * counts.attempted


def describe_unread(counts: Counts, *, of_reference: bool = False) -> str:
    """One line that says what could not be read, of how many, why, with an example and the setting to look at."""
    reasons = Counter({reason: n for reason, n in counts.count_unread().items() if n})
    [(worst, _), *_] = reasons.most_common(1)
    settings = SETTINGS[worst].format(
        of="reference." if of_reference else "", listing="reference" if of_reference else "source"
    )
    share = f"only {counts.readable:,}" if counts.readable else "none"
    return (
        f"{share} of {counts.attempted:,} {'works' if of_reference else 'stories'} could be read:"
        f" {', '.join(f'{reason} {n:,}' for reason, n in reasons.most_common())}; for example"
        f" {counts.examples[worst]}; look at {settings}"
    )


def keep_examples(counts: Counts, batch: Iterable[Skipped | DeadLettered], locate: Callable[[Story], str]) -> None:
    """Keep the first of these stories that could not be read for a reason that has no example yet.

    `locate` says where a story's page was looked for.
    """
    for outcome in batch:
        match outcome:
            case Skipped(story, reason) if reason not in HARMLESS and reason not in counts.examples:
                named = "" if story.title is None else f", “{story.title}”,"
                counts.examples[reason.value] = f"story {story.shown}{named} at {locate(story)}"
            case DeadLettered(BadRow(), reason, error) if reason not in counts.examples:
                counts.examples[reason.value] = error
            case DeadLettered(Story() as story, reason, error) if reason not in counts.examples:
                counts.examples[reason.value] = f"story {story.shown}: {error}"
