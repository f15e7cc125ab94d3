"""The evidence page of a pair: the values that its template shows, and the page as one self-contained file."""

import sqlite3
from pathlib import Path
from typing import Any

from neardup.core.languages import Languages
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.text import Text
from neardup.ledger import clusters, flags, open_snapshot, stories
from neardup.moderation import wording
from neardup.moderation.evidence.alignment import align_stories, list_story_highlights, sort_passages
from neardup.moderation.evidence.graph import Graph, choose_drawn, lay_out
from neardup.moderation.export.target import write_atomically
from neardup.moderation.templating import load_assets, make_environment
from neardup.query.compare import Comparer, load_pair, read_common
from neardup.query.evidence import (
    Evidence,
    LoadedStory,
    UnreadableStory,
    choose_thresholds,
    find_evidence,
    read_evidence,
)

TEMPLATE = "evidence.html.j2"


def render_evidence(
    facts: Evidence,
    a: LoadedStory | UnreadableStory,
    b: LoadedStory | UnreadableStory,
    graph: Graph | None,
    languages: Languages,
) -> str:
    """The evidence page of a pair as one self-contained HTML document."""
    template = make_environment(languages).get_template(TEMPLATE)
    return template.render(**make_template_values(facts, a, b, graph), inline_assets=load_assets(languages))


def make_template_values(
    facts: Evidence, a: LoadedStory | UnreadableStory, b: LoadedStory | UnreadableStory, graph: Graph | None
) -> dict[str, Any]:
    """The values of evidence.html.j2: the evidence for a pair, its stories and its cluster."""
    # an unreadable story is shown without text
    loaded = [story if isinstance(story, LoadedStory) else LoadedStory(Text(""), story.known) for story in (a, b)]
    aligned = align_stories(facts, *loaded)
    return {
        "facts": facts,
        "kind": wording.name_kind(facts),
        "headline": wording.describe_overlap(facts),
        "findings": wording.list_findings(facts),
        "warnings": wording.list_warnings(facts),
        "shares": {side: wording.describe_share(facts, side) for side in facts.sides},
        "scores": wording.list_scores(facts),
        "aligned": aligned,
        "legend": list_story_highlights(aligned),
        "graph": graph,
    }


def find_passage(facts: Evidence, word: int) -> int | None:
    """The number of the passage that holds a word of B, or else of the nearest one; None without passages."""
    distances = [
        (max(passage.b.word - word, word - passage.b.word - passage.b.words + 1, 0), number)
        for number, passage in enumerate(sort_passages(facts), 1)
    ]
    return min(distances)[1] if distances else None


def draw_cluster(db: sqlite3.Connection, pair: tuple[int, int]) -> Graph | None:
    """The drawing of the cluster of a pair (A, B) of stories; None unless it has both and another story."""
    found = clusters.find_around(db, pair[0])
    if found is None or len(found[0].stories) <= len(pair) or pair[1] not in found[0].stories:
        return None
    return lay_out(*found, pair, stories.describe(db, choose_drawn(found[0], pair)))


async def write_evidence(comparer: Comparer, first: str, second: str, path: Path, languages: Languages) -> None:
    """Write the evidence page of two stories to `path`, atomically; `first` and `second` name them as for `compare`.

    Raises as `load_pair` does, and Fatal for a file that cannot be written.
    """
    a, b = await load_pair(comparer, first, second)
    graph = None
    flag, common = None, NO_HASHES
    if comparer.ledger is not None and "id" in a.known and "id" in b.known:
        with open_snapshot(comparer.ledger) as db:
            pair = a.known["id"], b.known["id"]
            flag = flags.read_pair(db, *pair)
            graph = draw_cluster(db, pair)
            common = read_common(db, a, b)
    if isinstance(a, LoadedStory) and isinstance(b, LoadedStory):
        facts = find_evidence(a, b, choose_thresholds(comparer.detection, a, b), common)
    else:
        facts = read_evidence(a, b, flag)
    page = render_evidence(facts, a, b, graph, languages)
    write_atomically(path, lambda file: file.write_text(page, encoding="utf-8"))
