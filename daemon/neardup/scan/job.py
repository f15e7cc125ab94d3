"""The whole of a scan: read the documents, nominate and verify the pairs, and put what is found into a ledger.

What nominates stays in memory, 1 KB a document; the texts stay in scratch files.
"""

import asyncio
import sqlite3
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from neardup.app import make_extraction, open_readers
from neardup.config import Config
from neardup.core.fingerprint.version import algorithm, check_native_core
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.page import PageFingerprinted
from neardup.core.text.scripts import ENGLISH, SURE
from neardup.errors import Fatal
from neardup.ledger import Ledger, cases, connect, languages, passages, similarities, stories, transaction, verification
from neardup.ledger.passages import CommonPassage
from neardup.nomination.in_memory import NominatedPairs, Pair, nominate_pairs
from neardup.pages.reader_pool import PROCESSES, ReaderPool
from neardup.pages.results import NotModified, PageResult, make_results
from neardup.pages.store import PlainContent, find_location
from neardup.pipeline.run_lifecycle import Hook, carry_out
from neardup.pipeline.summary import Counts, Phase, Progress, RunSummary, Watch, log_left_out
from neardup.pipeline.worker import keep_examples, make_outcomes
from neardup.records import (
    Assessment,
    BadRow,
    Candidate,
    Dead,
    DeadLettered,
    Fingerprint,
    Kind,
    Language,
    PairedStory,
    Story,
)
from neardup.scan.processes import (
    KeptText,
    Operations,
    ReadDocument,
    Reader,
    Scratch,
    Verifier,
    WorkerDied,
    Workers,
    fork_workers,
)
from neardup.scan.request import Listing
from neardup.source.documents import BadDocument, Document, Listed
from neardup.source.parse import UNPRINTABLE

DOCUMENTS_AT_A_TIME = 32  # that a process reads
PAIRS_AT_A_TIME = 500  # that a process verifies
ROWS_AT_A_TIME = 2_000  # documents or pairs that a transaction writes
READ, BEGIN, VERIFY = "read", "begin", "verify"
UNDECIDED = "; --language compares it all the same"

Result = TypeVar("Result")


class ComparedDocument(NamedTuple):
    """A document to compare: its id, its language, its fingerprint and its text."""

    id: int
    language: Language
    fingerprint: Fingerprint
    text: KeptText


class Processes(NamedTuple):
    """The worker processes of a scan; `reader` and `verifier` work in this process, in place of one that died."""

    workers: Workers
    reader: Reader
    verifier: Verifier


@contextmanager
def scan_processes(config: Config) -> Iterator[Processes]:
    """Fork the processes of a scan, before an event loop begins.

    Raises Fatal for a store that does not exist, and for a native core that computes other fingerprints.
    """
    content, extraction = PlainContent.of(config.content), make_extraction(config)
    try:
        check_native_core()  # it loads what all processes need, too
    except RuntimeError as error:
        raise Fatal(str(error)) from error
    with ExitStack() as stack:
        scratches = [stack.enter_context(closing(Scratch())) for _ in range(PROCESSES + 1)]
        reader, verifier = Reader(content, extraction, scratches[-1], PROCESSES), Verifier(config.detection, scratches)

        def make_operations(number: int) -> Operations:
            read = Reader(content, extraction, scratches[number], number).read_all
            return {READ: read, BEGIN: verifier.begin, VERIFY: verifier.verify}

        yield Processes(stack.enter_context(fork_workers(make_operations)), reader, verifier)


async def scan_documents(
    config: Config,
    listing: Listing,
    processes: Processes,
    show_progress: Callable[[str], AbstractContextManager[Watch]],
    *,
    is_kept: bool,
) -> "Scan":
    """Read the documents and flag the copies in the ledger of `config`; returns the scan that did it.

    A ledger that `is_kept` gets its cases too.  Raises Fatal if no document can be compared, and as `carry_out` does.
    """
    connect(config.ledger.path).close()
    with closing(Ledger(config.ledger.path)) as ledger, show_progress("scan") as watch:
        await carry_out(
            job := Scan(config, ledger, listing, processes, watch),
            ledger,
            asyncio.Event(),
            shutdown_seconds=config.run.shutdown_seconds,
            hooks=[Hook("cases", lambda _: ledger.do(cases.refresh))] if is_kept else [],
        )
    return job


def describe_unread(counts: Counts) -> str:
    """The documents that could not be compared, by reason, each with an example."""
    return "; ".join(
        f"{reason} {n:,}, for example {counts.examples[reason]}" for reason, n in sorted(counts.count_unread().items())
    )


class Scan:
    """A scan, for `carry_out`.  Raises Fatal if no document can be compared, or the scratch files have no room.

    `guessed` counts the documents by the language that they seem to be in, `unsure` those where that is uncertain.
    """

    watermark = None

    def __init__(self, config: Config, ledger: Ledger, listing: Listing, processes: Processes, watch: Watch) -> None:
        self.summary = RunSummary("scan")
        self._config = config
        self._ledger = ledger
        self._listing = listing
        self._processes = processes
        self._watch = watch
        self.progress = Progress(self.summary.counts)
        self._compared: list[ComparedDocument] = []
        self.guessed = Counter[Language]()
        self.unsure = 0
        self._readers: ReaderPool | None = None

    async def prepare(self) -> None:
        """Register the languages in the ledger."""
        await self._ledger.do(languages.register, self._config.registry)

    async def collect_facts(self) -> dict[str, object]:
        """The number of documents, 0 if it is not known."""
        return {"documents": self._listing.size}

    async def work(self, run_id: int) -> bool:
        """Read and compare all documents."""
        counts = self.summary.counts
        try:
            first_new = await self._read_all(run_id)
        except OSError as error:
            raise Fatal(f"cannot keep the texts: {error}") from error
        finally:
            if self._readers is not None:
                await self._readers.aclose()
        if not counts.fingerprinted:
            raise Fatal(f"none of {counts.listed:,} documents can be compared: {describe_unread(counts)}")
        self._enter("comparing", len(self._compared))
        nominated = await asyncio.to_thread(nominate_pairs, self._compared, self._config.detection, first_new)
        for language in {document.language for document in self._compared}:
            log_left_out(language, nominated.left_out[language])
        await self._verify_all(nominated)
        return True

    async def _read_all(self, run_id: int) -> int | None:
        """Read the reference and the documents; returns how many of the former are compared, None without one."""
        first_new = None
        if self._listing.reference is not None:
            await self._read_listed(run_id, self._listing.reference)
            first_new = len(self._compared)
        await self._read_listed(run_id, self._listing.documents)
        return first_new

    async def _read_listed(self, run_id: int, listed: Listed) -> None:
        results, refused = list[tuple[Story, PageResult]](), list[DeadLettered]()
        async for read in self._yield_in_order(self._read(batch) async for batch in _cut_batches(listed)):
            for document, found in read:
                match self._take_up(document, found):
                    case DeadLettered() as outcome:
                        refused.append(outcome)
                    case result:
                        results.append(result)
            if len(results) + len(refused) >= ROWS_AT_A_TIME:
                await self._write(run_id, results, refused)
                results, refused = [], []
        await self._write(run_id, results, refused)

    async def _yield_in_order(self, tasks: AsyncIterator[Coroutine[Any, Any, Result]]) -> AsyncIterator[Result]:
        """The results of tasks in their order, of which enough run at a time to occupy all processes."""
        running = deque[asyncio.Task[Result]]()
        try:
            async for task in tasks:
                running.append(asyncio.create_task(task))
                if len(running) > 2 * PROCESSES:
                    yield await running.popleft()
            while running:
                yield await running.popleft()
        finally:
            for left in running:
                left.cancel()

    async def _read(
        self, batch: Sequence[Document | BadDocument]
    ) -> list[tuple[Document | BadDocument, ReadDocument | None]]:
        """Read documents; those that the processes cannot read, one by one."""
        documents = [document for document in batch if isinstance(document, Document)]
        try:
            read: list[ReadDocument | None] = await self._processes.workers.run(READ, documents)
        except WorkerDied:
            read = [None] * len(documents)
        results = iter(
            [found or await self._read_alone(document) for document, found in zip(documents, read, strict=True)]
        )
        return [(document, next(results) if isinstance(document, Document) else None) for document in batch]

    async def _read_alone(self, document: Document) -> ReadDocument:
        """Read a document by a reader process, whose watchdog names what is wrong with it."""
        self._readers = self._readers or open_readers(self._config)
        story = Story(0, document.language or ENGLISH, document.path, title=document.name)
        result, text = await self._readers.read_with_text(story)
        assert not isinstance(result, NotModified)
        utf8 = None if text is None else text.encode()
        return await asyncio.to_thread(self._processes.reader.keep, document, result, utf8)

    def _take_up(
        self, document: Document | BadDocument, read: ReadDocument | None
    ) -> tuple[Story, PageResult] | DeadLettered:
        """Count the next document, and keep it for the comparison if it has a fingerprint; returns its outcome."""
        self.progress.position += 1
        number, name = self.progress.position, UNPRINTABLE.sub("\ufffd", document.name)
        if isinstance(document, Document) and read is not None and read.wrong_script is not None:
            document = BadDocument(name, Dead.BAD_LANGUAGE, f"{read.wrong_script}{UNDECIDED}")
        if isinstance(document, BadDocument) or read is None:
            assert isinstance(document, BadDocument)
            row = BadRow(f"document {number}", document.reason, f"{name}: {document.error}", number)
            return DeadLettered(row, row.reason, row.error)
        story = Story(number, read.language, document.path, title=name, position=number)
        if isinstance(read.result, PageFingerprinted):
            assert read.text is not None
            if read.confidence is not None:
                self.guessed[read.language] += 1
                self.unsure += read.confidence < SURE
            self._compared.append(ComparedDocument(number, read.language, read.result.fingerprint, read.text))
        return story, read.result

    async def _write(
        self, run_id: int, results: Sequence[tuple[Story, PageResult]], refused: Sequence[DeadLettered]
    ) -> None:
        counts, outcomes = self.summary.counts, make_outcomes(make_results(results), {}, self._config.registry)
        outcomes.others.extend(refused)
        counts.add(outcomes)
        keep_examples(counts, outcomes.others, lambda story: find_location(self._config.content, story))
        await self._ledger.do(stories.commit, stories.Batch(outcomes, [], run_id, counts.as_dict(), None))
        self.progress.size = self._listing.size
        self._watch(self.progress)

    async def _verify_all(self, nominated: NominatedPairs) -> None:
        """Verify the pairs, and write the flags and near misses."""
        compared, workers = self._compared, self._processes.workers
        sides = [PairedStory.of(document.id, document.language, document.fingerprint) for document in compared]
        common = await self._write_common_passages(nominated)
        columns = sides, [document.text for document in compared], common
        self._processes.verifier.begin(*columns)
        await workers.run_everywhere(BEGIN, *columns)
        pairs = nominated.pairs
        self._enter("verifying", len(pairs))
        rows = list[tuple[Candidate, Assessment, bool]]()
        async for verified, found in self._yield_in_order(self._verify(chunk) async for chunk in _cut_chunks(pairs)):
            rows += (
                (Candidate(sides[left], sides[right]), assessment, (left, right) in nominated.by_passages)
                for (left, right), assessment in found
            )
            self.progress.position += verified
            if len(rows) >= ROWS_AT_A_TIME:
                await self._write_flags(rows)
                rows = []
        await self._write_flags(rows)

    async def _verify(self, pairs: Sequence[Pair]) -> tuple[int, list[tuple[Pair, Assessment]]]:
        """How many pairs were verified, and what was found."""
        try:
            found = await self._processes.workers.run(VERIFY, pairs)
        except WorkerDied:
            found = await asyncio.to_thread(self._processes.verifier.verify, pairs)
        return len(pairs), found

    async def _write_common_passages(self, nominated: NominatedPairs) -> dict[Language, PassageHashes]:
        """Record the common passages; returns their hashes, ascending, by language."""
        examples = [self._compared[place] for place in nominated.common.examples.tolist()]
        rows = [
            CommonPassage(example.language, hash_, holders, example.id, due_at=surplus)
            for example, hash_, holders, surplus in zip(
                examples, *(column.tolist() for column in nominated.common[:3]), strict=True
            )
        ]
        await self._ledger.do(passages.record_common, rows)
        hashes = defaultdict[Language, list[int]](list)
        for row in rows:
            hashes[row.language].append(row.hash)
        return {language: np.array(sorted(hashes_of), np.uint32) for language, hashes_of in hashes.items()}

    async def _write_flags(self, rows: Sequence[tuple[Candidate, Assessment, bool]]) -> None:
        new = await self._ledger.do(_put, rows)
        self.summary.counts.add_flags(new.items())
        self._watch(self.progress)

    def _enter(self, phase: Phase, size: int) -> None:
        self.progress.enter(phase, size)
        self._watch(self.progress)


def _put(db: sqlite3.Connection, rows: Sequence[tuple[Candidate, Assessment, bool]]) -> Counter[tuple[Language, Kind]]:
    """Write flags and near misses in one transaction; returns the flags."""
    with transaction(db):
        new = verification.put_first_flags(db, rows, algorithm())
        similarities.refresh(db)
    return new


async def _cut_batches(listed: Listed) -> AsyncIterator[list[Document | BadDocument]]:
    """The documents, DOCUMENTS_AT_A_TIME."""
    batch: list[Document | BadDocument] = []
    async for document in listed:
        batch.append(document)
        if len(batch) == DOCUMENTS_AT_A_TIME:
            yield batch
            batch = []
    if batch:
        yield batch


async def _cut_chunks(pairs: Sequence[Pair]) -> AsyncIterator[Sequence[Pair]]:
    """The pairs, PAIRS_AT_A_TIME."""
    for start in range(0, len(pairs), PAIRS_AT_A_TIME):
        yield pairs[start : start + PAIRS_AT_A_TIME]
