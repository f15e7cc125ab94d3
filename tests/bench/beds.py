"""The beds of `make bench`: pages as sites have them, of the same generated stories.

Pages of real sites are seldom bare: authors paste from Word and from Google Docs, and a site sets each story in its
template.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template

from msgspec import Struct

from tests.bench.pages import AUTHORS, TITLE_WORDS, Page, Story, bare_page, document

WORD_HEAD = (
    "<!--[if gte mso 9]><xml><w:WordDocument><w:View>Normal</w:View><w:Zoom>0</w:Zoom><w:DoNotOptimizeForBrowser/>"
    "</w:WordDocument></xml><![endif]--><!--[if gte mso 10]><style>table.MsoNormalTable {mso-style-name:'Table Normal';"
    " font-size:11.0pt; mso-fareast-language:EN-US;}</style><![endif]-->"
)
WORD_PARAGRAPH = (
    '<p class="MsoNormal" style="margin-bottom:0in;text-align:justify;line-height:150%"><span lang="HI" style="'
    "font-size:12.0pt;line-height:150%;font-family:&quot;Mangal&quot;,serif;mso-fareast-font-family:&quot;Times New "
    'Roman&quot;;color:black;mso-bidi-language:HI">{}<o:p></o:p></span></p>'
)
WORD_BLANK = '<p class="MsoNormal"><o:p>&nbsp;</o:p></p>'
DOCS_PARAGRAPH = (
    '<p dir="ltr" style="line-height:1.38;margin-top:0pt;margin-bottom:12pt;"><span style="font-size:11pt;font-family:'
    "Arial,sans-serif;color:#000000;background-color:transparent;font-weight:400;font-style:normal;font-variant:normal;"
    'text-decoration:none;vertical-align:baseline;white-space:pre;white-space:pre-wrap;">{}</span></p>'
)
RELATED_STORY = (
    '<a class="card" href="/story/{0}"><img src="/covers/{0}.jpg" alt="" loading="lazy" width="64" height="64">'
    '<span class="truncate">{1}</span></a>'
)


class Bed(Struct, frozen=True):
    """One kind of page; `body` selects the story on it, "" is the whole page."""

    page: Page
    body: str = ""


def word_page(story: Story) -> str:
    """What an editor on the web keeps of a story that is pasted from Word."""
    paragraphs = "\n".join(WORD_PARAGRAPH.format(text) for text in story.paragraphs)
    return document(WORD_HEAD, f"<!--StartFragment-->\n{paragraphs}\n{WORD_BLANK}\n<!--EndFragment-->")


def docs_page(story: Story) -> str:
    """As `word_page`, from Google Docs."""
    paragraphs = "<br />".join(DOCS_PARAGRAPH.format(text) for text in story.paragraphs)
    return document("", f'<b style="font-weight:normal;" id="docs-internal-guid-{story.id:08x}">{paragraphs}</b>')


def site_page(story: Story) -> str:
    """A story in the template of a site: 8 KB of icons, buttons, a menu, a modal, a style sheet and comments."""
    return _site_template().substitute(
        id=story.id,
        title=story.title,
        author=story.id % AUTHORS,
        story="\n".join(f"<p>{text}</p>" for text in story.paragraphs),
        comments="\n".join(f"<li><b>{words[0]}</b> <p>{' '.join(words[1:])}</p></li>" for words in story.related),
        related="\n".join(RELATED_STORY.format(story.id, " ".join(words[:TITLE_WORDS])) for words in story.related),
    )


@cache
def _site_template() -> Template:
    return Template(Path(__file__).with_name("site_template.html").read_text(encoding="utf-8"))


BARE = "bare"
BEDS: Mapping[str, Bed] = {
    BARE: Bed(bare_page),
    "pasted from Word": Bed(word_page),
    "pasted from Google Docs": Bed(docs_page),
    "site's template, selector": Bed(site_page, "article .story"),
    "site's template, no selector": Bed(site_page),
}
