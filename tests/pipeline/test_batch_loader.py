"""Laws: keys requested together are loaded in one call; each caller gets its own value or error."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.pipeline.batch_loader import BatchLoader


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
async def test_keys_requested_together_are_loaded_in_one_call(keys: list[int]) -> None:
    calls: list[list[int]] = []

    async def load(keys: list[int]) -> dict[int, int]:
        calls.append(list(keys))
        await asyncio.sleep(0)
        return {key: key * key for key in keys if key % 2}

    loader: BatchLoader[int, int] = BatchLoader(load)  # type: ignore[arg-type]
    assert await asyncio.gather(*map(loader, keys)) == [key * key if key % 2 else None for key in keys]
    assert calls == [keys], "more than one call"
    assert await loader(3) == 9, "a later key is not loaded"


async def test_a_failed_call_fails_its_own_callers_only() -> None:
    values: list[str] = []

    async def load(_: object) -> dict[int, str]:
        if not values:
            raise ZeroDivisionError
        return {1: values[0]}

    loader: BatchLoader[int, str] = BatchLoader(load)
    failed = await asyncio.gather(loader(1), loader(2), return_exceptions=True)
    assert [type(error) for error in failed] == [ZeroDivisionError, ZeroDivisionError]
    values.append("one")
    assert await loader(1) == "one"
