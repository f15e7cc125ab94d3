"""The tiers of matches: one ordered table of everything that distinguishes one kind of match from another.

A tier is added by adding a row to TIERS, and nowhere else.  What the row needs beyond today's signals goes into
`Signals.extra`, which the ledger stores as it is.  The severities leave gaps, so that a new tier can be placed
between two others without touching flags and verdicts that are on record.
"""

from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct

from neardup.records import Kind, Signals

EXACT, NEAR, SIMILAR, PARTIAL, PASSAGE = "exact", "near", "similar", "partial", "passage"
TRANSLITERATED, REWRITTEN, SERIAL = "transliterated", "rewritten", "serial"
TRANSLATED, RETOLD = "translated", "retold"
# Extra signals, as `core.verify.alignment` counts them: copied words, and those that stand in common passages instead.
COPIED_WORDS, COMMON_WORDS = "copied_words", "common_words"
LONG_SPANS = "long_spans"  # words, as `core.verify.skeletons` counts them
OWN_CONTAINMENT = "own_containment"  # as `core.verify.scores` computes it, where both texts have common passages
SHORT = "short"  # 1 where the texts share few shingles: what they share may be a greeting or a form
POPULAR = "popular"  # 1 where the shorter text is little more than common passages, so that it has no own containment
MARGIN = "margin"  # of vectors, as `meaning.margins` computes it
LANGUAGES = "languages"  # where the signals compare skeletons: how many languages the stories are filed under, 1 or 2
LABELS = "labels"  # where the signals compare words: 2 if the stories are filed under two languages, in one script
RARE_WORDS = "rare_words"  # in the same order in both, as `core.verify.rewriting` counts them
RARE_SHARE = "rare_share"  # of the rare words of both that they are; only where the signals compare these
RARE_SPANS = "rare_spans"  # words that their blocks reach over, in the story where these are fewer
# Of the skeletons of two stories of one language.  Stories that share a form or a disclaimer have up to .50.
DISGUISED_CONTAINMENT = 0.6
# Words in long spans of two skeletons.  Unrelated stories of one language have up to 30.
DISGUISED_WORDS = 80
REWRITTEN_WORDS = 12  # rare words of two stories that stand in the same order
REWRITTEN_SPANS = 60  # words, so that a greeting or a form that two short stories share rewrites neither
# Apart from a disclaimer that they share, most unrelated stories of one kind have less own containment than this.
UNRELATED_CONTAINMENT = 0.175


class Thresholds(Protocol):
    """What makes a pair a copy, in one language."""

    @property
    def hamming(self) -> int: ...
    @property
    def jaccard(self) -> float: ...
    @property
    def containment(self) -> float: ...
    @property
    def passage_words(self) -> int: ...
    @property
    def rare_share(self) -> float: ...


def _always(longer: int, shorter: int) -> bool:
    return True


def _never(longer: int, shorter: int) -> bool:
    """A passage says nothing on the rest of its two stories, and vectors prove no copy."""
    return False


class Tier(Struct, frozen=True):
    """One kind of match.

    - `severity`: the rank in queues and exports; the lowest comes first and is the most serious.
    - `nominated_by`: the indexes that bring up its candidates.
    - `compares`: what of the texts its signals compare.  Kinds that compare vectors are no verified copies: they have a
      queue of their own, see neardup.ledger.meaning_flags.
    - `holds`: whether a pair with these signals is of this kind, if no tier above holds.
    - `strength`: orders flags of this kind, the largest first.  Any scale will do.
    - `label`, `meaning`: what moderators read; `evidence` is a format string of the signals, with shares in percent.
    - `tone`: the CSS class of its badge.
    - `is_of_whole_texts`: whether it says that two stories are the same as a whole.  Such a match counts all words that
      are copied, those of common passages too: a story that a hundred accounts repeat is a hundred copies.
    - `joins_clusters`: whether a flag joins its two stories in a cluster, given the words of the longer and
      of the shorter story.
    - `reuse_expected`: whether authors often repeat their own text in this way (the recap of a serial), so that
      `detection.same_author` applies to flags between two stories of one author.
    """

    kind: Kind
    severity: int
    nominated_by: tuple[Literal["simhash", "signature", "passages", "vectors"], ...]
    compares: Literal["words", "skeletons", "rare words", "vectors"]
    holds: Callable[[Signals, Thresholds], bool]
    strength: Callable[[Signals], float]
    label: str
    meaning: str
    evidence: str
    tone: Literal["strong", "mild"] = "mild"
    is_of_whole_texts: bool = False
    joins_clusters: Callable[[int, int], bool] = _never
    reuse_expected: bool = True


def _of_similar_length(longer: int, shorter: int) -> bool:
    """An anthology contains its stories, which have nothing else in common: it must not join them."""
    return longer <= 2 * shorter


def _by_words_never(signals: Signals, thresholds: Thresholds) -> bool:
    """The chapters before and after decide on a near miss (neardup.ledger.serials), and on vectors their margin, by a
    threshold that is fitted to the corpus (neardup.meaning.margins).
    """
    return False


def _is_similar(signals: Signals, thresholds: Thresholds) -> bool:
    """A popular text is judged as a whole; any other must share more than common passages and chance."""
    return (signals.jaccard or 0) >= thresholds.jaccard and (
        signals.extra.get(OWN_CONTAINMENT, 1) > UNRELATED_CONTAINMENT
    )


def _convert_jaccard(thresholds: Thresholds) -> float:
    """The containment of two texts of one length that are just `similar`."""
    return 2 * thresholds.jaccard / (1 + thresholds.jaccard)


def _is_partial(signals: Signals, thresholds: Thresholds) -> bool:
    """What many share is no part copied, nor are a few words, unless a longer story has a text as a whole."""
    if POPULAR in signals.extra:
        return signals.containment >= _convert_jaccard(thresholds)
    if SHORT in signals.extra and signals.containment < _convert_jaccard(thresholds):
        return False
    own, copied = signals.extra.get(OWN_CONTAINMENT, 1), signals.extra.get(COPIED_WORDS, 1)
    return min(signals.containment, own) >= thresholds.containment and copied > 0


def _is_transliterated(signals: Signals, thresholds: Thresholds) -> bool:
    """A part is enough if it is long: words in another script or misread ones change many grams of a copy."""
    if signals.extra.get(LONG_SPANS, 0) >= DISGUISED_WORDS:
        return True
    least = DISGUISED_CONTAINMENT if signals.extra[LANGUAGES] == 1 else 0
    if SHORT in signals.extra:
        least = max(least, _convert_jaccard(thresholds))
    return signals.containment >= max(thresholds.containment, least)


def _is_passage(signals: Signals, thresholds: Thresholds) -> bool:
    """Translations of a page into two languages of one script share code and names in another: no copied passage."""
    return LABELS not in signals.extra and signals.extra.get(COPIED_WORDS, 0) >= thresholds.passage_words


def _is_rewritten(signals: Signals, thresholds: Thresholds) -> bool:
    extra = signals.extra
    is_long = extra[RARE_WORDS] >= REWRITTEN_WORDS and extra[RARE_SPANS] >= REWRITTEN_SPANS
    return is_long and extra[RARE_SHARE] >= thresholds.rare_share


TIERS: tuple[Tier, ...] = (
    Tier(
        kind=EXACT,
        severity=100,
        nominated_by=("simhash",),
        compares="words",
        holds=lambda signals, _: signals.same_text,
        strength=lambda _: 1.0,
        is_of_whole_texts=True,
        joins_clusters=_always,
        reuse_expected=False,
        label="Exact copy",
        meaning="the same text",
        evidence="the same text",
        tone="strong",
    ),
    Tier(
        kind=NEAR,
        severity=200,
        nominated_by=("simhash",),
        compares="words",
        holds=lambda signals, thresholds: signals.hamming <= thresholds.hamming,
        strength=lambda signals: (signals.jaccard or 0) / 2 - signals.hamming,
        is_of_whole_texts=True,
        joins_clusters=_always,
        reuse_expected=False,
        label="Near copy",
        meaning="a word or two changed",
        evidence="{hamming} of 128 bits differ",
        tone="strong",
    ),
    Tier(
        kind=SIMILAR,
        severity=300,
        nominated_by=("signature",),
        compares="words",
        holds=_is_similar,
        strength=lambda signals: signals.jaccard or 0,
        is_of_whole_texts=True,
        joins_clusters=_always,
        reuse_expected=False,
        label="Similar stories",
        meaning="the same story with changes throughout, or with much added",
        evidence="{jaccard} in common",
    ),
    Tier(
        kind=PARTIAL,
        severity=400,
        nominated_by=("signature", "passages"),
        compares="words",
        holds=_is_partial,
        strength=lambda signals: signals.containment,
        joins_clusters=_of_similar_length,
        label="Partial copy",
        meaning="a large part of one is contained in the other",
        evidence="{containment} of one in the other",
    ),
    Tier(
        kind=TRANSLITERATED,
        severity=450,
        nominated_by=("passages",),
        compares="skeletons",
        holds=_is_transliterated,
        strength=lambda signals: signals.containment,
        joins_clusters=_of_similar_length,
        label="Disguised copy",
        meaning="the same words in another script, with other spaces, or under another language",
        evidence="{containment} of one in the other",
    ),
    Tier(
        kind=PASSAGE,
        severity=500,
        nominated_by=("passages",),
        compares="words",
        holds=_is_passage,
        strength=lambda signals: signals.extra.get(COPIED_WORDS, 0),
        label="Copied passage",
        meaning="a passage of one stands in the other",
        evidence="{copied_words} words copied",
    ),
    Tier(
        kind=REWRITTEN,
        severity=550,
        nominated_by=("signature", "passages"),
        compares="rare words",
        holds=_is_rewritten,
        strength=lambda signals: signals.extra.get(RARE_SHARE, 0),
        label="Rewritten story",
        meaning="the same rarer words in the same order, with other words between them",
        evidence="{rare_words} rare words in the same order",
    ),
    Tier(
        kind=SERIAL,
        severity=575,
        nominated_by=("signature", "passages"),
        compares="words",
        holds=_by_words_never,
        strength=lambda signals: signals.extra.get(COPIED_WORDS, 0),
        label="Chapter of a copied serial",
        meaning="a few words of one stand in the other, as those of the chapters around them do",
        evidence="{copied_words} words copied",
    ),
    Tier(
        kind=TRANSLATED,
        severity=600,
        nominated_by=("vectors",),
        compares="vectors",
        holds=_by_words_never,
        strength=lambda signals: signals.extra.get(MARGIN, 0),
        label="Translated story",
        meaning="the same story in another language",
        evidence="alike in meaning",
    ),
    Tier(
        kind=RETOLD,
        severity=700,
        nominated_by=("vectors",),
        compares="vectors",
        holds=_by_words_never,
        strength=lambda signals: signals.extra.get(MARGIN, 0),
        label="Retold story",
        meaning="the same story in other words",
        evidence="alike in meaning",
    ),
)


def list_kinds() -> tuple[Kind, ...]:
    """The kinds of flags, which the texts verify, the most severe first."""
    return tuple(tier.kind for tier in TIERS if tier.compares != "vectors")


def list_kinds_of_meaning() -> tuple[Kind, ...]:
    """The kinds that vectors find, which a moderator must verify; no flag is of these."""
    return tuple(tier.kind for tier in TIERS if tier.compares == "vectors")


def list_kinds_of_passages() -> tuple[Kind, ...]:
    """The kinds that passages alone nominate."""
    return tuple(tier.kind for tier in TIERS if tier.nominated_by == ("passages",))


BY_KIND = {tier.kind: tier for tier in TIERS}
BY_WORDS, BY_SKELETONS, BY_RARE_WORDS = (
    tuple(tier for tier in TIERS if tier.compares == part) for part in ("words", "skeletons", "rare words")
)


def find_tier(kind: str) -> Tier:
    """The tier of this kind.  Raises ValueError where there is none."""
    if (tier := BY_KIND.get(kind)) is None:
        raise ValueError(f"unknown kind of match: {kind!r}")
    return tier


def find_kind(signals: Signals, thresholds: Thresholds) -> Kind | None:
    """The most severe kind that holds for a pair; None where none does."""
    if (tier := _find_tier_that_holds(signals, thresholds)) is None:
        return None
    return TRANSLITERATED if LABELS in signals.extra else tier.kind


def counts_common(signals: Signals, thresholds: Thresholds) -> bool:
    """Whether the words of common passages count as copied in a pair with these signals."""
    tier = _find_tier_that_holds(signals, thresholds)
    return tier is not None and (tier.is_of_whole_texts or (tier.kind == PARTIAL and POPULAR in signals.extra))


def _find_tier_that_holds(signals: Signals, thresholds: Thresholds) -> Tier | None:
    tiers = BY_WORDS
    if LANGUAGES in signals.extra:
        tiers = BY_SKELETONS
    elif RARE_SHARE in signals.extra:
        tiers = BY_RARE_WORDS
    return next((tier for tier in tiers if tier.holds(signals, thresholds)), None)
