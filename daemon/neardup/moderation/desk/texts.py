"""Reading the current texts of stories for a page, while a moderator waits for it."""

import asyncio
from collections.abc import Mapping
from typing import Any

from neardup.errors import NeardupError
from neardup.moderation.desk.desk import Desk
from neardup.moderation.interface import gettext
from neardup.query.compare import load_story
from neardup.query.evidence import LoadedStory, UnreadableStory

READ_SECONDS = 10.0


async def load_text(desk: Desk, known: Mapping[str, Any]) -> LoadedStory | UnreadableStory:
    """A story with its text, or without it if the store fails or does not answer in time.

    `known` is its row of `query.compare.describe_stories`.
    """
    try:
        async with desk.reads, asyncio.timeout(READ_SECONDS):
            return await load_story(desk.pool, known)
    except TimeoutError:
        return UnreadableStory(known, gettext("the store takes too long to answer"))
    except NeardupError as error:
        return UnreadableStory(known, str(error))
