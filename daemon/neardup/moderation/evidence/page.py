"""The page of a pair: the template's parts for whoever serves it, and the page that needs nothing but itself."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from neardup.config import Config
from neardup.errors import Fatal
from neardup.languages import Languages
from neardup.ledger import clusters, flags, read, stories, translated
from neardup.moderation import wording
from neardup.moderation.evidence.graph import Graph, graph
from neardup.moderation.evidence.pieces import shared
from neardup.moderation.templating import environment, inlined
from neardup.query.compare import Told, Untold, both, evidence, limits_of, remembered

TEMPLATE = "evidence.html.j2"


def render_evidence(
    facts: dict[str, Any], a: Told | Untold, b: Told | Untold, drawn: Graph | None, languages: Languages
) -> str:
    """The page of a pair, complete in itself; its parts are those of `parts`."""
    template = environment(languages).get_template(TEMPLATE)
    return template.render(**parts(facts, a, b, drawn), inlined=inlined(languages))


def parts(facts: dict[str, Any], a: Told | Untold, b: Told | Untold, drawn: Graph | None) -> dict[str, Any]:
    """What evidence.html.j2 draws: the facts of a pair (`evidence`, or `remembered`), its stories, its cluster."""
    told = [one if isinstance(one, Told) else Told("", [], one.known) for one in (a, b)]
    return {
        "facts": facts,
        "kind": wording.kind(facts),
        "headline": wording.headline(facts),
        "findings": wording.findings(facts),
        "warnings": wording.warnings(facts),
        "shares": {side: wording.share(facts, side) for side in "ab"},
        "scores": wording.scores(facts),
        "shared": shared(facts, *told),
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


async def write_evidence(config: Config, one: str, other: str, path: Path) -> None:
    """Write the page of two stories, named as for `compare`, whole or not at all.  Raises as it does, or Fatal."""
    a, b = await both(config, one, other)
    drawn = None
    flag = None
    if "id" in a.known and "id" in b.known:
        with closing(read(config.ledger.path)) as db, translated(config.ledger.path):
            pair = a.known["id"], b.known["id"]
            flag = flags.of_pair(db, *pair)
            drawn = cluster_graph(db, pair)
    if isinstance(a, Told) and isinstance(b, Told):
        facts = evidence(a, b, limits_of(config, a, b))
    else:
        facts = remembered(a, b, flag)
    page = render_evidence(facts, a, b, drawn, config.registry)
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(page, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise Fatal(f"cannot write {path}: {error.strerror}") from error
