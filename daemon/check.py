"""What would a text be flagged against?  Looks, and stores nothing."""

import re
from typing import Any

from daemon.app import App, extraction
from daemon.core.html import decode, visible_text
from daemon.core.verify import judge
from daemon.errors import Transient
from daemon.ledger import runs, stories
from daemon.records import Banded, Candidate, Language
from daemon.review.export import rfc3339
from daemon.sync import refuse
from daemon.worker import fingerprint_text

MARKUP = re.compile(r"<(!doctype|html|body|p|div|article)\b", re.IGNORECASE)


async def check(app: App, body: bytes, language: Language) -> list[dict[str, Any]]:
    """A page or a plain text -> the stories it would be flagged against, best first.

    Raises Unreadable where it holds no story, Fatal or Transient for an index that cannot tell.
    """
    text = decode(body, None)
    if MARKUP.search(text):
        text = visible_text(text, extraction(app.config))
    made = fingerprint_text(text)
    refuse(await app.index.mark(), runs.get(app.reader, "ledger_id") or "", app.version)
    applied, [ids] = await app.index.lookup([Banded(language, made.simhash)])
    if applied is None or applied < stories.last_seq(app.reader):
        raise Transient("the index is behind the ledger: a run, or `neardup reindex`, brings it up to date")
    found = []
    for story_id, story in stories.describe(app.reader, ids).items():
        pair = Candidate(
            -1, story_id, language, made.text_hash, story["text_hash"], made.simhash, story["simhash"], made.words
        )
        flag = judge(pair, app.config.detection.of(language).hamming)
        if flag is not None:
            found.append(
                {
                    "kind": flag.kind,
                    "story_id": story_id,
                    "hamming": flag.hamming,
                    "title": story["title"],
                    "author_id": story["author_id"],
                    "published_at": rfc3339(story["published_at"]),
                }
            )
    return sorted(found, key=lambda match: (match["hamming"], match["story_id"]))
