"""What was nominated, as the ledger records it: the best matches of each story, at most `detection.max_matches`."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from neardup.config import Detection
from neardup.ledger import active_verdicts, candidates, transaction
from neardup.ledger.candidates import Matches
from neardup.records import Language

NominatedPair = tuple[int, int, Language]  # the ids of a story and its match, and the language of the story


def matches_of(
    story_id: int, language: Language, detection: Detection, ids: Sequence[int], by_passages: Sequence[int] = ()
) -> Matches:
    """The matches of a story, best first, with the limit of its language."""
    return Matches(story_id, ids, detection.of(language).max_matches, by_passages)


def record_pairs(
    db: sqlite3.Connection, pairs: Iterable[NominatedPair], detection: Detection, *, by_passages: bool
) -> Counter[Language]:
    """Record pairs, those of a story together and the best first, in one transaction.

    `by_passages` says that passages alone nominated them.  Returns how many were left out, by language.
    """
    left_out = Counter[Language]()
    with transaction(db):
        for (story_id, language), matches in groupby(pairs, itemgetter(0, 2)):
            ids = [match for _, match, _ in matches]
            some = ((), ids) if by_passages else (ids, ())
            left_out[language] += candidates.nominate(db, matches_of(story_id, language, detection, *some))
    return left_out


def shortlist_limit(db: sqlite3.Connection, language: Language, detection: Detection) -> int:
    """How many matches of a story to shortlist before they are recorded.

    Pairs with a verdict do not count towards `max_matches`; the limit keeps a story with many from listing all pairs.
    """
    most = detection.of(language).max_matches
    return most + min(active_verdicts.most_of_a_story(db, language), most)
