"""The case file as HTML and as PDF, and the notice to the author of the story."""

import base64
import hashlib
import logging
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from neardup import __version__
from neardup.errors import Misuse, needs_extra
from neardup.languages import Languages
from neardup.ledger import now_ms
from neardup.moderation.case_file.content import CaseFile
from neardup.moderation.templating import environment, font_rules
from neardup.moderation.wording import VERDICT_NAMES, percent, similarity_findings, similarity_headline
from neardup.records import rfc3339

ARTICLE, PAGE = "case_article.html.j2", "case_file.html.j2"
NOTICE_OF_OTHERS = "en"  # the language of the notice where there is none in the author's
PANGO = "Pango, a system library: apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0"


def render_html(case: CaseFile, languages: Languages) -> str:
    """The case file as one self-contained page, which prints the SHA-256 of its own element <article>, in UTF-8."""
    jinja = environment(languages)
    article = jinja.get_template(ARTICLE).render(
        case=case,
        found=case.found,
        verdict_names=VERDICT_NAMES,
        headline=similarity_headline(case.found),
        findings=similarity_findings(case.found),
    )
    style = (files("neardup.moderation") / "static" / "case_file.css").read_text(encoding="utf-8")
    style += font_rules(languages)
    return jinja.get_template(PAGE).render(
        case=case,
        article=article,
        digest=digest_of(article),
        made_at=rfc3339(now_ms()),
        version=__version__,
        style=style,
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )


def digest_of(article: str) -> str:
    """The SHA-256 of the element <article> of a case file, in hexadecimal."""
    return hashlib.sha256(article.strip().encode()).hexdigest()


def render_pdf(page: str) -> bytes:
    """The page of a case file as PDF, with its fonts embedded.

    Raises Misuse if the extra or its system library is missing.
    """
    check_pdf()
    logging.getLogger("weasyprint").setLevel(logging.ERROR)  # it warns of CSS that only browsers know
    from weasyprint import HTML  # type: ignore[import-untyped] # noqa: PLC0415 - it is optional, and takes half a second

    written: bytes = HTML(string=page, url_fetcher=_refuse).write_pdf()
    return written


def check_pdf() -> None:
    """Raises Misuse if the extra for PDF or its system library is missing."""
    try:
        with needs_extra("pdf", "a PDF"):
            import weasyprint  # noqa: F401, PLC0415 - as above
    except OSError as error:
        raise Misuse(f"a PDF needs {PANGO}") from error


def _refuse(url: str) -> dict[str, Any]:
    raise ValueError(f"a case file loads nothing: {url}")


def render_notice(case: CaseFile, languages: Languages) -> str:
    """The notice to the author, in the language of the story.  Raises Misuse for a story without a source."""
    if not case.found.copied_words:
        raise Misuse("there is nothing to notify: no part of this story is known to be copied")
    entry = languages.get(case.found.language)
    code = entry.code if entry and entry.code in notice_languages() else NOTICE_OF_OTHERS
    return (
        _notices()
        .get_template(f"{code}.txt")
        .render(
            title=case.found.title,
            share=percent(case.found.similarity),
            sources=case.sources,
            link=case.link,
            reference=case.found.name or case.found.story_id,
        )
    )


def notice_languages() -> set[str]:
    """The ISO codes of the languages that have a notice."""
    folder = files("neardup.moderation") / "notices"
    return {file.name.removesuffix(".txt") for file in folder.iterdir() if file.name.endswith(".txt")}


@cache
def _notices() -> Environment:
    return Environment(
        loader=PackageLoader("neardup.moderation", "notices"),
        autoescape=False,  # noqa: S701 - a notice is plain text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
