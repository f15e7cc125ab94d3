"""The script health of a run: by language, what its pages and texts are like on average.

`ledger.script_health` compares the means with those of earlier runs, since a change of a template or an encoding
upstream shows in them at once.
"""

from collections import Counter, defaultdict

import numpy as np
import numpy.typing as npt

from neardup.ledger import Ledger, script_health
from neardup.ledger.script_health import Measure, Reading
from neardup.log import log
from neardup.records import Fingerprinted, Language, MarkReason, Outcome, Skip, Skipped

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
ROWS = 256  # added up at once, which takes less time than one by one


class ScriptHealth:
    """Adds up what the new texts of a run are like, by language."""

    def __init__(self) -> None:
        self._rows: defaultdict[Language, list[tuple[float, ...]]] = defaultdict(list)
        self._stories = Counter[Language]()
        self._without_story = Counter[Language]()
        self._sums: defaultdict[Language, Sums] = defaultdict(lambda: np.zeros((2, len(TEXT_MEASURES))))

    def add(self, outcome: Outcome) -> None:
        match outcome:
            case Fingerprinted(story=story, fingerprint=fingerprint, marks=marks, measures=measures) if measures:
                other_script = any(mark.reason is MarkReason.MISLABELLED for mark in marks)
                rows = self._rows[story.language]
                rows.append((*measures, other_script, fingerprint.shingles))
                if len(rows) >= ROWS:
                    self._add_up(story.language)
            case Skipped(story=story, reason=reason) if reason in NO_STORY:
                self._without_story[story.language] += 1

    def readings(self) -> dict[Language, dict[Measure, Reading]]:
        """By language, each measure of the stories so far."""
        for language in self._rows:
            self._add_up(language)
        return {language: self._of(language) for language in sorted({*self._stories, *self._without_story})}

    def _add_up(self, language: Language) -> None:
        if rows := self._rows[language]:
            values = np.array(rows)
            self._sums[language] += values.sum(axis=0), np.square(values).sum(axis=0)
            self._stories[language] += len(rows)
            rows.clear()

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
