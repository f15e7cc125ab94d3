"""What was nominated, as the ledger records it: the best matches of each story, at most `detection.max_matches`."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from neardup.config import Detection
from neardup.ledger import candidates, transaction
from neardup.ledger.candidates import Matches
from neardup.records import Language

NominatedPair = tuple[int, int, Language]  # the ids of a story and its match, and the language of the story


def make_matches(
    story_id: int,
    language: Language,
    detection: Detection,
    ids: Sequence[int],
    by_passages: Sequence[int] = (),
    *,
    left_out: int = 0,
) -> Matches:
    """The matches of a story, best first, with the limit of its language."""
    return Matches(story_id, ids, detection.of(language).max_matches, by_passages, left_out)


def record_pairs(
    db: sqlite3.Connection,
    pairs: Iterable[NominatedPair],
    detection: Detection,
    cut: Collection[int],
    *,
    by_passages: bool,
) -> None:
    """Record pairs, those of a story together and the best first, in one transaction.

    `by_passages` says that passages alone nominated them.  Of the stories in `cut`, other matches were left out.
    """
    with transaction(db):
        for (story_id, language), matches in groupby(pairs, itemgetter(0, 2)):
            ids = [match for _, match, _ in matches]
            whole, apart = ((), ids) if by_passages else (ids, ())
            left_out = int(story_id in cut)
            candidates.nominate(db, make_matches(story_id, language, detection, whole, apart, left_out=left_out))
