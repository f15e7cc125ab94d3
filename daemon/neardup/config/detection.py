"""[detection]: the thresholds that make a pair of stories a copy."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from neardup.config.section import Section
from neardup.core.candidates.banding import MAX_SIGNATURE_BANDS, Banding, divide_bands
from neardup.core.fingerprint.minhash import ROWS
from neardup.records import MIN_BLOCK, Language


class Thresholds(Section, frozen=True, kw_only=True):
    """The thresholds of one language."""

    hamming: Annotated[
        int, Meta(description="A pair is `near` when at most this many of the 128 SimHash bits differ. 0 to 7.")
    ] = 3
    bands: Annotated[
        int,
        Meta(
            ge=1,
            le=MAX_SIGNATURE_BANDS,
            description=f"Number of MinHash signature bands in the index. 1 to {MAX_SIGNATURE_BANDS}.",
        ),
    ] = MAX_SIGNATURE_BANDS
    shared_bands: Annotated[
        int,
        Meta(
            ge=1,
            description="A candidate must share at least this many signature bands. 1 finds more partial copies but is "
            "slow on a large corpus.",
        ),
    ] = 2
    agreeing_rows: Annotated[
        int,
        Meta(ge=0, le=ROWS, description=f"A candidate must agree in at least this many of the {ROWS} signature rows."),
    ] = 10
    jaccard: Annotated[float, Meta(gt=0, le=1, description="A pair is `similar` from this Jaccard similarity up.")] = (
        0.5
    )
    containment: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="A pair is `partial` when at least this share of one story's shingles occurs in the other, and "
            "`transliterated` when at least this share of its skeleton does, and in one language at least 0.6.",
        ),
    ] = 0.5
    passage_words: Annotated[
        int,
        Meta(
            ge=MIN_BLOCK,
            description="A pair is `passage` when at least this many words of one story were copied into the other, "
            "edits and common passages not counted.",
        ),
    ] = 75
    rare_share: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="A pair is `rewritten` when at least this share of the rare words of both stories, and 12 of "
            "them, stand in the same order in both.",
        ),
    ] = 0.35
    max_matches: Annotated[
        int,
        Meta(
            gt=0,
            description="Largest number of matches that a story brings in. The best are verified and kept; "
            "the rest are counted.",
        ),
    ] = 50
    max_bucket: Annotated[
        int,
        Meta(gt=0, description="Members above which a bucket is reported, and divided among the tasks of a Spark job."),
    ] = 5000

    def __post_init__(self) -> None:
        divide_bands(self.hamming)
        if self.shared_bands > self.bands:
            raise ValueError(f"shared_bands: {self.shared_bands} of {self.bands} bands cannot be shared")


class Detection(Thresholds, frozen=True, kw_only=True):
    """[detection], and a table [detection.LANGUAGE] for each language that differs."""

    common_passage: Annotated[
        int,
        Meta(
            gt=0,
            description="A passage in more than this many stories, such as a prayer or a disclaimer, is common: it "
            "nominates no candidates, and its words do not count as copied, unless two stories match as a whole.",
        ),
    ] = 50
    same_author: Annotated[
        Literal["hide", "keep"],
        Meta(
            description="`hide` keeps `partial`, `transliterated`, `passage` and `rewritten` flags between stories of "
            "one author out of queue, export and counts, and `translated` and `retold` pairs; they are recorded all "
            "the same."
        ),
    ] = "hide"
    copy_similarity: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="The verdict of a check is `copy` when at least this share of the words stands in earlier "
            "stories of others. An `exact`, `near` or `similar` match with another author's story is a `copy` "
            "whatever the share.",
        ),
    ] = 0.5
    remember_removed_days: Annotated[
        int,
        Meta(
            ge=0,
            le=36_500,
            description="For so many days the fingerprint of a text that was removed while a verdict called it "
            "plagiarism is kept, without the text, to know it or a part of it again under another account. 0 keeps "
            "none.",
        ),
    ] = 365
    languages: Annotated[
        dict[Language, Thresholds],
        Meta(description="Thresholds by language; a key that is left out has the value of [detection]."),
    ] = field(default_factory=dict)

    @classmethod
    def prepare(cls, table: dict[str, Any]) -> dict[str, Any]:
        """The tables of languages as one table `languages`, each with what it inherits."""
        if "languages" in table:
            return table
        common: dict[str, Any] = {}
        tables: dict[Language, dict[str, Any]] = {}
        for key, value in table.items():
            if isinstance(value, dict):
                language = Language(key)
                tables[language] = {**tables.get(language, {}), **value}
            else:
                common[key] = value
        of_all = set(cls.__struct_fields__).difference(Thresholds.__struct_fields__)
        inherited = {key: value for key, value in common.items() if key not in of_all}
        return {**common, "languages": {language: {**inherited, **own} for language, own in tables.items()}}

    def of(self, language: Language) -> Thresholds:
        return self.languages.get(language, self)

    def banding(self, language: Language) -> Banding:
        own = self.of(language)
        return Banding(own.hamming, own.bands, own.shared_bands, own.max_bucket)

    def bandings(self, languages: Iterable[Language]) -> dict[Language, Banding]:
        return {language: self.banding(language) for language in languages}
