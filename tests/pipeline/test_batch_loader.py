"""Laws: what is asked for together is asked in one question; each gets its own answer or error."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.pipeline.batch_loader import Coalesced


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
async def test_keys_that_come_together_are_asked_for_together(keys: list[int]) -> None:
    asked: list[list[int]] = []

    async def ask(wanted: list[int]) -> dict[int, int]:
        asked.append(list(wanted))
        await asyncio.sleep(0)
        return {key: key * key for key in wanted if key % 2}

    coalesced: Coalesced[int, int] = Coalesced(ask)  # type: ignore[arg-type]
    assert await asyncio.gather(*map(coalesced, keys)) == [key * key if key % 2 else None for key in keys]
    assert asked == [keys], "in one question"
    assert await coalesced(3) == 9, "and in another one later"


async def test_a_question_that_fails_fails_those_who_asked_and_nobody_after() -> None:
    fine: list[str] = []

    async def ask(_: object) -> dict[int, str]:
        if not fine:
            raise ZeroDivisionError
        return {1: fine[0]}

    coalesced: Coalesced[int, str] = Coalesced(ask)
    failed = await asyncio.gather(coalesced(1), coalesced(2), return_exceptions=True)
    assert [type(error) for error in failed] == [ZeroDivisionError, ZeroDivisionError]
    fine.append("one")
    assert await coalesced(1) == "one"
