"""Exports as self-contained HTML pages of cases, of stories or of members of clusters, without scripts and requests.

The page of cases is streamed case by case.  The templates escape every value, so no markup of a story survives.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any

from neardup.core.languages import Languages
from neardup.core.verify import tiers
from neardup.moderation import wording
from neardup.moderation.evidence.alignment import list_highlights
from neardup.moderation.export.cases import ListedCase, Tally
from neardup.moderation.export.passages import CopiedPassages
from neardup.moderation.export.tables import ExportRow
from neardup.moderation.templating import make_environment, make_font_rules, make_page_values, read_static
from neardup.query.evidence import Evidence, StoryFacts
from neardup.records import Kind, Language

TEMPLATE = "export.html.j2"
SHEETS = "review.css", "export.css"
MAX_STORIES_SHOWN = 5000  # on a page of stories, or of members
BUFFERED_CHUNKS = 64  # chunks of the template's output that are written together

Passages = Mapping[int, CopiedPassages]  # by flag id


def write_page(
    path: Path, cases: Sequence[ListedCase], chosen: Tally, passages: Passages, *, registry: Languages
) -> None:
    """Write the page of these cases; `chosen` counts all selected ones, shown or not."""
    tally = Counter((listed.case.language, listed.case.kind) for listed in cases)
    languages = [language for language in registry if any(language == tallied for tallied, _ in tally)]
    kinds = [kind for kind in tiers.list_kinds() if any(kind == tallied for _, tallied in tally)]
    page = _open_template(registry).stream(
        **make_page_values(_make_style(languages, kinds, tally) + make_font_rules(registry)),
        languages={shown: sum(n for (language, _), n in tally.items() if language == shown) for shown in languages},
        kinds={shown: sum(n for (_, kind), n in tally.items() if kind == shown) for shown in kinds},
        chosen=chosen.total(),
        left_out=[
            (language, kind, tally[language, kind], chosen[language, kind])
            for kind, language in product(kinds, languages)
            if tally[language, kind] < chosen[language, kind]
        ],
        cases=cases,
        passages=passages,
        legend=_list_highlights(passages),
    )
    page.enable_buffering(BUFFERED_CHUNKS)
    with path.open("w", encoding="utf-8") as out:
        page.dump(out)


def _list_highlights(passages: Passages) -> set[str]:
    shown = [pair for copied in passages.values() for pair in copied.passages]
    return list_highlights(chain.from_iterable(pair.a for pair in shown), chain.from_iterable(pair.b for pair in shown))


def make_evidence(pair: ExportRow, copied: CopiedPassages | None) -> Evidence:
    """A pair as evidence, for the wording; A is the match."""
    a, b = (
        StoryFacts(
            pair[f"{side}_id"],
            language=pair["language"],
            title=pair[f"{side}_title"],
            path=pair[f"{side}_path"],
            author_id=pair[f"{side}_author_id"],
            published_at=pair[f"{side}_published_at"],
            updated_at=pair[f"{side}_updated_at"],
            known_since=pair[f"{side}_known_since"],
            **({"catalogue": pair["catalogue"], "licence": pair["licence"]} if side == "matched" else {}),
        )
        for side in ("matched", "story")
    )
    return Evidence(
        a=a,
        b=b,
        kind=pair["kind"],
        similarity=pair["similarity"],
        hamming=pair["hamming"],
        jaccard=pair["jaccard"],
        containment=pair["matched_containment"],
        matched_containment=pair["containment"],
        longest_run_words=pair["longest_run_words"],
        estimated=pair["estimated"],
        earlier="a" if pair["earlier_id"] is not None else None,
        same_author=pair["same_author"],
        share_a=None if copied is None else copied.share_a,
        share_b=None if copied is None else copied.share_b,
        rare_words=() if copied is None else copied.rare_words,
    )


def _make_style(languages: list[Language], kinds: list[Kind], tally: Tally) -> str:
    """The style sheets, and rules that hide the cases of other languages and kinds than those chosen."""
    chosen = [*(f"language-{name}" for name in languages), *(f"kind-{name}" for name in kinds)]
    rules = [f"body:has(#{name}:checked) .flag:not(.{name})" for name in chosen]
    hidden = f"{', '.join(rules)} {{ display: none }}\n" if rules else ""
    empty = [
        f"body:has(#language-{language}:checked):has(#kind-{kind}:checked) .none"
        for language, kind in product(languages, kinds)
        if not tally[language, kind]
    ]
    shown = f"{', '.join(empty)} {{ display: block }}\n" if empty else ""
    return read_static(*SHEETS) + hidden + shown


@cache
def _open_template(languages: Languages) -> Any:
    return make_environment(languages).get_template(
        TEMPLATE, globals={"make_evidence": make_evidence, "wording": wording}
    )


def write_stories_page(path: Path, stories: Iterable[ExportRow], chosen: int, *, registry: Languages) -> None:
    """Write the page of these stories that copy, the first of `chosen` that were selected."""
    _write_list(path, "stories.html.j2", registry, stories=list(stories), chosen=chosen)


def write_members_page(path: Path, members: Iterable[ExportRow], chosen: int, *, registry: Languages) -> None:
    """Write the page of these members of clusters, the first of `chosen` that were selected."""
    shown = list(members)
    clusters = [list(rows) for _, rows in groupby(shown, itemgetter("cluster_id"))]
    _write_list(path, "members.html.j2", registry, clusters=clusters, shown=len(shown), chosen=chosen)


def _write_list(path: Path, template: str, registry: Languages, **values: object) -> None:
    style = read_static(*SHEETS) + make_font_rules(registry)
    page = make_environment(registry).get_template(template).render(**make_page_values(style), **values)
    path.write_text(page, encoding="utf-8")
