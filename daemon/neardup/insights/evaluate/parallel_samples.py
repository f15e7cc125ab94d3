"""The margins of the translated and retold samples, as if they stood among the stories of the corpus."""

import csv
import json
from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

import numpy as np

from neardup.core.text.chunks import chunks
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import visible_text
from neardup.meaning import neighbours, vectors
from neardup.meaning.codes import codes_of, unit
from neardup.meaning.margins import aligned_similarities, margin
from neardup.meaning.neighbours import SAME_TEXT, CentredStory, compare
from neardup.meaning.parts import Parts
from neardup.pairs import Kind
from neardup.records import Language

SAMPLES = resources.files("neardup") / "samples" / "meaning"
STORY = Extraction("article .story")
SAMPLE = 1 << 62  # the id of the other sample, which no story has


class SamplePair(NamedTuple):
    """Two samples that say the same, and the kind of the pair."""

    a: int
    b: int
    kind: Kind


class _Sample(NamedTuple):
    story: CentredStory
    candidates: Mapping[int, CentredStory]


async def sample_margins(parts: Parts) -> list[tuple[SamplePair, float]]:
    """The margin that each pair of samples would have in the corpus."""
    rows = csv.DictReader((SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines())
    made = {int(row["id"]): await _sample(parts, row["id"], Language(row["language"])) for row in rows}
    lines = (SAMPLES / "truth.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [SamplePair(**json.loads(line)) for line in lines]
    return [(pair, _margin(made[pair.a], made[pair.b])) for pair in pairs]


async def _sample(parts: Parts, story_id: str, language: Language) -> _Sample:
    page = (SAMPLES / "stories" / language / f"{story_id}.html").read_text(encoding="utf-8")
    embedded = await parts.embedder.embed(chunks(visible_text(page, STORY)))
    centring = await parts.vectors.do(vectors.read_centring)
    code = codes_of(vectors.story_vector(embedded, language, centring)[None])
    [nearest] = await parts.vectors.do(neighbours.find_nearest, code)
    story = CentredStory(language, centring.apply(embedded, language))
    return _Sample(story, await parts.vectors.do(neighbours.read_centred, nearest))


def _margin(one: _Sample, other: _Sample) -> float:
    """The margin of two samples, each beside its candidates and the other; a corpus may hold the samples as well."""
    similarity = float(aligned_similarities(one.story.chunks, other.story.chunks[None])[0])
    sides = []
    for here, there in ((one, other), (other, one)):
        others = {n: held for n, held in here.candidates.items() if not _is_either(held, one.story, other.story)}
        backgrounds = compare(here.story, others | {SAMPLE: there.story}).backgrounds
        sides.append(backgrounds[there.story.language])
    return margin(similarity, *sides)


def _is_either(held: CentredStory, one: CentredStory, other: CentredStory) -> bool:
    whole = unit(np.stack([some.chunks.mean(axis=0) for some in (held, one, other)]))
    return bool((whole[1:] @ whole[0]).max() >= SAME_TEXT)
