"""The script health of a run: by language, what its pages and texts are like on average.

`ledger.script_health` compares the means with those of earlier runs, since a change of a template or an encoding
upstream shows in them at once.
"""

from collections import Counter, defaultdict

import numpy as np
import numpy.typing as npt

from neardup.core.columns import Outcomes
from neardup.ledger import Ledger, script_health
from neardup.ledger.script_health import Measure, Reading
from neardup.records import Language, MarkReason, Skip, Skipped
from neardup.telemetry.log import log

Sums = npt.NDArray[np.float64]

TEXT_MEASURES = (
    Measure.TOKENS,
    Measure.SIGNS,
    Measure.REPLACED,
    Measure.HIDDEN,
    Measure.OTHER_SCRIPT,
    Measure.SHINGLES,
)
# Skipped for these reasons, a page was read and has no story.
NO_STORY = {Skip.EMPTY, Skip.NOT_TEXT, Skip.NO_BODY, Skip.TOO_SHORT, Skip.OVER_BUDGET}


class ScriptHealth:
    """Adds up what the new texts of a run are like, by language."""

    def __init__(self) -> None:
        self._stories = Counter[Language]()
        self._without_story = Counter[Language]()
        self._sums: defaultdict[Language, Sums] = defaultdict(lambda: np.zeros((2, len(TEXT_MEASURES))))

    def add(self, outcomes: Outcomes) -> None:
        listed, pages = outcomes.made.stories, outcomes.made.pages
        languages = np.array(listed.languages)
        other_script = [any(mark.reason is MarkReason.MISLABELLED for mark in marks) for marks in pages.marks]
        values = np.column_stack((pages.headers["measures"], other_script, pages.headers["shingles"]))
        for language in set(listed.languages):
            own = values[pages.measured & (languages == language)]
            self._stories[language] += len(own)
            self._sums[language] += own.sum(axis=0), np.square(own).sum(axis=0)
        self._without_story.update(
            outcome.story.language
            for outcome in outcomes.others
            if isinstance(outcome, Skipped) and outcome.reason in NO_STORY
        )

    def readings(self) -> dict[Language, dict[Measure, Reading]]:
        """By language, each measure of the stories so far."""
        languages = sorted(language for language, n in (self._stories + self._without_story).items() if n)
        return {language: self._of(language) for language in languages}

    def _of(self, language: Language) -> dict[Measure, Reading]:
        n, without = self._stories[language], self._without_story[language]
        sums, squares = self._sums[language].tolist()
        columns = zip(TEXT_MEASURES, sums, squares, strict=True) if n else ()
        found = {measure: Reading.of(n, total, square) for measure, total, square in columns}
        return found | {Measure.EMPTY: Reading.of(n + without, without, without)}


async def report(ledger: Ledger) -> list[str]:
    """What is unusual about the texts of the last run, a line each; also logged."""
    found = await ledger.do(script_health.unusual_in_last_run)
    for one in found:
        log.warning(
            "the texts of a run are unusual", language=one.language, measure=one.measure, mean=one.mean, band=one.band
        )
    return list(map(str, found))
