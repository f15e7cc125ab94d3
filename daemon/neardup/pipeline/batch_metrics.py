"""The metrics and log lines of a batch that was written."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from neardup.core.columns import Outcomes
from neardup.core.fingerprint.minhash import FEW_SHINGLES
from neardup.records import BadRow, DeadLettered, Language, Skipped, Story
from neardup.telemetry.lazy_metrics import observe_all
from neardup.telemetry.log import log
from neardup.telemetry.metrics import CANDIDATES, CAPPED, MARKED, STORIES


def count_outcomes(batch: Outcomes) -> None:
    """Count the outcomes of a batch, and log its dead letters."""
    made = batch.made
    signed = zip(made.stories.languages, made.pages.signed.tolist(), strict=True)
    counts = Counter(  # added at once: an increment takes 5 us
        {
            (language, "fingerprinted", "" if is_signed else FEW_SHINGLES): n
            for (language, is_signed), n in Counter(signed).items()
        }
    )
    marked = Counter(
        (language, mark.reason)
        for language, marks in zip(made.stories.languages, made.pages.marks, strict=True)
        for mark in marks
    )
    for outcome in batch.others:
        language = outcome.story.language if isinstance(outcome.story, Story) else Language("unknown")
        match outcome:
            case Skipped():
                marked.update((language, mark.reason) for mark in outcome.marks or ())
                counts[language, "skipped", outcome.reason] += 1
            case DeadLettered():
                counts[language, "dead_lettered", outcome.reason] += 1
                story = (
                    outcome.story.key if isinstance(outcome.story, BadRow) else outcome.story.name or outcome.story.id
                )
                log.warning("dead-lettered", story=story, reason=outcome.reason, why=outcome.error)
    for labels, count in counts.items():
        STORIES.labels(*labels).inc(count)
    for (language, reason), count in marked.items():
        MARKED.labels(language, reason).inc(count)


class MatchMetrics:
    """Counts the matches of one run, and logs once a language that stories have more than max_matches."""

    def __init__(self) -> None:
        self._capped_languages: set[Language] = set()

    def count(self, matched: Iterable[tuple[int, Language, int, int]]) -> None:
        """Count stories: id, language, number of matches, number of matches left out."""
        found = defaultdict[Language, list[int]](list)
        for story_id, language, matches, left_out in matched:
            found[language].append(matches)
            if left_out:
                CAPPED.labels(language).inc(left_out)
                if language not in self._capped_languages:
                    self._capped_languages.add(language)
                    log.warning("max_matches reached", language=language, first=story_id)
        for language, numbers in found.items():
            observe_all(CANDIDATES.labels(language), numbers)
