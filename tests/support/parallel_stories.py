"""Stories of concepts, each of which has a word of its own in each language and two in Hindi, and a model of them."""

import csv
import random
from pathlib import Path

import numpy as np
from aiohttp import web

from tests.support.command import embedded
from tests.support.languages import HINDI, TAMIL

CONCEPTS = 1_500
WORDS = 240  # of a story
DIMENSIONS = 96
LETTERS = {HINDI: "कखगचजटडतदनपबमरलवसह", TAMIL: "கசடதபமரலவயனளழற"}
OTHER_WORDS = "retold"
VOCABULARIES = {HINDI: HINDI, TAMIL: TAMIL, OTHER_WORDS: HINDI}  # and the language of each

ORIGINAL, TRANSLATION, RETELLING = 1, 2, 3
UNRELATED = range(10, 40)


def word(vocabulary: str, concept: int) -> str:
    return "".join(random.Random(f"{vocabulary} {concept}").choices(LETTERS[VOCABULARIES[vocabulary]], k=7))


CONCEPT_OF = {word(vocabulary, concept): concept for vocabulary in VOCABULARIES for concept in range(CONCEPTS)}
VECTORS = np.random.default_rng(3).standard_normal((CONCEPTS, DIMENSIONS))


def text_of(vocabulary: str, seed: int) -> str:
    """A story about what the seed says."""
    concepts = random.Random(seed).choices(range(CONCEPTS), k=WORDS)
    return " ".join(word(vocabulary, concept) for concept in concepts)


def write_stories(folder: Path) -> str:
    """Write a story, its translation, its retelling and unrelated stories; returns the configuration for them."""
    stories = {
        ORIGINAL: (HINDI, text_of(HINDI, 1)),
        TRANSLATION: (TAMIL, text_of(TAMIL, 1)),
        RETELLING: (HINDI, text_of(OTHER_WORDS, 1)),
    }
    for n in UNRELATED:
        language = (HINDI, TAMIL)[n % 2]
        stories[n] = language, text_of(language, n)
    for story_id, (language, text) in stories.items():
        page = folder / "pages" / language / f"{story_id}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f'<div class="post-body"><p>{text}</p></div>', encoding="utf-8")
    with (folder / "list.csv").open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(("id", "language", "published_at", "author_id"))
        table.writerows((n, language, f"2025-01-{n % 28 + 1:02}T00:00:00Z", n) for n, (language, _) in stories.items())
    return embedded(folder / "list.csv", folder / "pages")


def embeddings_of_concepts(texts: list[str]) -> web.Response:
    """The answer of a service whose model knows the concept of each word, and hears the language in it."""
    data = []
    for n, text in enumerate(texts):
        concepts = [CONCEPT_OF[word] for word in text.split() if word in CONCEPT_OF]
        spoken = np.full(DIMENSIONS, 3.0 if any(letter in text for letter in LETTERS[HINDI]) else -3.0)
        vector = VECTORS[concepts].sum(axis=0) + spoken + 0.01
        data.append({"index": n, "embedding": vector.tolist()})
    return web.json_response({"data": data})
