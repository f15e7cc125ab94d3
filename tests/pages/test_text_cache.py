"""Laws of the texts of candidates: each is read once, gone or unanswered; a log line says that most are gone."""

import asyncio
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st
from neardup.core.page import Unreadable
from neardup.core.verify.text import Text
from neardup.pages.results import ReadFailed, TextResult
from neardup.pages.text_cache import MIN_TEXTS_TO_WARN, NoText
from neardup.records import Dead, PairedStory, Skip, Story
from structlog.testing import capture_logs

from tests.support.builders import texts_by
from tests.support.languages import HINDI

TEXTS = [Text(f"text {number}").keep_compared() for number in range(4 * MIN_TEXTS_TO_WARN)]
WARNING = "most texts are gone, so signatures decide: is [content] right?"
Failure = tuple[TextResult, NoText]
FAILURES: list[Failure] = [  # what reading a page gives, and why it gives no text
    (Text("another text").keep_compared(), NoText.GONE),
    (Unreadable(Skip.MISSING), NoText.GONE),
    (ReadFailed(Dead.QUARANTINED, "the page ends processes"), NoText.GONE),
    (ReadFailed(Dead.STORE_ERROR, "the store does not answer"), NoText.UNANSWERED),
    (ReadFailed(Dead.FORBIDDEN, "the store refuses"), NoText.UNANSWERED),
]
MISSING, UNANSWERED = FAILURES[1], FAILURES[3]


def side_of(number: int, text_hash: bytes) -> PairedStory:
    return PairedStory(number, HINDI, None, text_hash, bytes(16), None, 3, 2)


@given(st.lists(st.sampled_from([None, *FAILURES]), max_size=3 * MIN_TEXTS_TO_WARN))
@example([MISSING] * MIN_TEXTS_TO_WARN)
@example([MISSING] * (MIN_TEXTS_TO_WARN - 1) + [UNANSWERED] * 9)
@example([MISSING, None] * MIN_TEXTS_TO_WARN)
@example([MISSING, None] * MIN_TEXTS_TO_WARN + [MISSING] + [UNANSWERED] * MIN_TEXTS_TO_WARN)
async def test_each_text_is_read_once_or_gone_or_unanswered(failures: Sequence[Failure | None]) -> None:
    asked: list[int] = []
    sides = [side_of(number, text.text_hash) for number, text in enumerate(TEXTS[: len(failures)])]

    async def read(story: Story) -> TextResult:
        asked.append(story.id)
        failure = failures[story.id]
        return TEXTS[story.id] if failure is None else failure[0]

    texts = texts_by(read)
    with capture_logs() as logs:
        found = await texts.read(sides)
    expected = [text if failure is None else failure[1] for text, failure in zip(TEXTS, failures, strict=False)]
    assert found == {side.text_hash: text for side, text in zip(sides, expected, strict=True)}
    gone, answered = expected.count(NoText.GONE), len(expected) - expected.count(NoText.UNANSWERED)
    warnings = [(entry["gone"], entry["read"]) for entry in logs if entry["event"] == WARNING]
    is_due = answered >= MIN_TEXTS_TO_WARN and gone > answered / 2
    assert warnings == ([(gone, answered)] if is_due else [])
    asked.clear()
    await texts.read(sides)
    assert asked == [number for number, failure in enumerate(failures) if failure is not None], "not each text is kept"


@given(st.lists(st.sampled_from([None, *FAILURES]), min_size=1, max_size=4))
async def test_a_text_is_read_from_any_story_that_has_it(failures: Sequence[Failure | None]) -> None:
    async def read(story: Story) -> TextResult:
        failure = failures[story.id]
        return TEXTS[0] if failure is None else failure[0]

    text_hash = TEXTS[0].text_hash
    reasons = {NoText.GONE if failure is None else failure[1] for failure in failures}
    expected = TEXTS[0] if None in failures else NoText.UNANSWERED if NoText.UNANSWERED in reasons else NoText.GONE
    assert await texts_by(read).read([side_of(number, text_hash) for number in range(len(failures))]) == {
        text_hash: expected
    }


async def test_only_a_text_that_is_not_read_in_time_is_unanswered() -> None:
    async def read(story: Story) -> TextResult:
        return TEXTS[0] if story.id == 0 else await asyncio.get_running_loop().create_future()

    sides = [side_of(0, TEXTS[0].text_hash), side_of(1, b"text")]
    async with asyncio.timeout(60):
        found = await texts_by(read).read(sides, until=asyncio.get_running_loop().time() + 1)
    assert found == {TEXTS[0].text_hash: TEXTS[0], b"text": NoText.UNANSWERED}
