"""The page of a pair: the template's parts for whoever serves it, and the page that needs nothing but itself."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from neardup.errors import Fatal
from neardup.languages import Languages
from neardup.ledger import clusters, flags, read, stories, translated
from neardup.moderation import wording
from neardup.moderation.evidence.graph import Graph, graph
from neardup.moderation.evidence.pieces import shared
from neardup.moderation.templating import environment, inlined
from neardup.query.compare import Comparer, load_pair
from neardup.query.evidence import Evidence, LoadedStory, UnreadableStory, evidence, evidence_from_ledger, thresholds_of

TEMPLATE = "evidence.html.j2"


def render_evidence(
    facts: Evidence,
    a: LoadedStory | UnreadableStory,
    b: LoadedStory | UnreadableStory,
    drawn: Graph | None,
    languages: Languages,
) -> str:
    """The page of a pair, complete in itself; its parts are those of `parts`."""
    template = environment(languages).get_template(TEMPLATE)
    return template.render(**parts(facts, a, b, drawn), inlined=inlined(languages))


def parts(
    facts: Evidence, a: LoadedStory | UnreadableStory, b: LoadedStory | UnreadableStory, drawn: Graph | None
) -> dict[str, Any]:
    """What evidence.html.j2 draws: the evidence of a pair, its stories, its cluster."""
    texts = [one if isinstance(one, LoadedStory) else LoadedStory("", [], one.known) for one in (a, b)]
    return {
        "facts": facts,
        "kind": wording.kind(facts),
        "headline": wording.headline(facts),
        "findings": wording.findings(facts),
        "warnings": wording.warnings(facts),
        "shares": {side: wording.share(facts, side) for side in facts.sides},
        "scores": wording.scores(facts),
        "shared": shared(facts, *texts),
        "graph": drawn,
    }


def cluster_graph(db: sqlite3.Connection, pair: tuple[int, int]) -> Graph | None:
    """The cluster in which a pair (A, B) of stories is flagged; None where there are no others."""
    found = clusters.around(db, pair[0])
    if found is None or len(found.stories) <= len(pair) or pair[1] not in found.stories:
        return None
    members = set(found.stories)
    edges = flags.edges_around(db, pair[0])
    titles = {story: row["title"] for story, row in stories.describe(db, members).items()}
    return graph(found, edges, pair, titles)


async def write_evidence(comparer: Comparer, one: str, other: str, path: Path, languages: Languages) -> None:
    """Write the page of two stories, named as for `compare`, whole or not at all.  Raises as it does, or Fatal."""
    a, b = await load_pair(comparer, one, other)
    drawn = None
    flag = None
    if "id" in a.known and "id" in b.known:
        with closing(read(comparer.ledger)) as db, translated(comparer.ledger):
            pair = a.known["id"], b.known["id"]
            flag = flags.of_pair(db, *pair)
            drawn = cluster_graph(db, pair)
    if isinstance(a, LoadedStory) and isinstance(b, LoadedStory):
        facts = evidence(a, b, thresholds_of(comparer.detection, a, b))
    else:
        facts = evidence_from_ledger(a, b, flag)
    page = render_evidence(facts, a, b, drawn, languages)
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(page, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise Fatal(f"cannot write {path}: {error.strerror}") from error
