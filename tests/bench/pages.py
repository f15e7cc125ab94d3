"""Generated Devanagari stories with planted copies, and bare pages of them; the same count and seed give the same."""

import csv
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from string import Template

import numpy as np
from msgspec import Struct
from neardup.core.fingerprint.common_words import are_rare
from neardup.core.verify.text import Text

LANGUAGE = "HINDI"
FIRST_ID = 1_000_000
NEAR_SHARE = 0.02
EXACT_SHARE = 0.01
VOCABULARY = 30_000
COMMON = 400  # words, which make six tenths of a text, as the common words of a real one do
LOG_WORDS = (6.9, 0.5)  # mean and standard deviation of ln(words): about 1,100 words, 20 KB of HTML
PARAGRAPH_WORDS = 80
TITLE_WORDS, OPENING_WORDS = 4, 12
AUTHORS = 997
RELATED = 6  # stories that the page of another names
CONSONANTS = [chr(code) for code in range(0x0915, 0x0939)]
MARKS = ["", *map(chr, (0x093E, 0x093F, 0x0940, 0x0941, 0x0942, 0x0947, 0x0948, 0x094B, 0x094C, 0x094D))]


class Story(Struct, frozen=True):
    """A story's words; `copy` if they are those of an earlier story.

    `related` are the openings of the stories before it, for pages that name other stories.
    """

    id: int
    words: list[str]
    copy: bool
    related: Sequence[list[str]] = ()

    @property
    def title(self) -> str:
        return " ".join(self.words[:TITLE_WORDS])

    @property
    def paragraphs(self) -> Iterator[str]:
        """The texts of the paragraphs."""
        for at in range(0, len(self.words), PARAGRAPH_WORDS):
            yield f"{' '.join(self.words[at : at + PARAGRAPH_WORDS])}।"


Page = Callable[[Story], str]  # the HTML of a story


def document(head: str, body: str) -> str:
    """A page in Hindi; both parts are markup."""
    return (
        '<!DOCTYPE html><html lang="hi"><head><meta charset="utf-8"><title>story</title>'
        f"{head}</head><body>\n{body}\n</body></html>\n"
    )


def bare_page(story: Story) -> str:
    """Paragraphs, and nothing else."""
    paragraphs = "\n".join(f'<p style="text-align:justify">{text}&nbsp;</p>' for text in story.paragraphs)
    return document("<style>p { margin: 0 }</style>", paragraphs)


def write_pages(folder: Path, count: int, seed: int = 1, *, plant: bool = True, page: Page = bare_page) -> list[bool]:
    """Write folder/HINDI/<id>.html, as `page` makes them, and folder/manifest.csv.

    Returns for each story whether it is a copy.
    """
    (folder / LANGUAGE).mkdir(parents=True)
    copies: list[bool] = []
    with (folder / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
        manifest = csv.writer(file)
        manifest.writerow(("id", "language", "author_id", "title", "published_at"))
        for story in stories(count, seed, plant=plant):
            (folder / LANGUAGE / f"{story.id}.html").write_text(page(story), encoding="utf-8")
            published_at = f"2026-01-01T00:00:00.{len(copies) % 1000:03}Z"
            manifest.writerow((story.id, LANGUAGE, story.id % AUTHORS, story.title, published_at))
            copies.append(story.copy)
    return copies


def read_ids(manifest: Path) -> list[int]:
    """The ids in a manifest, in its order."""
    with manifest.open(encoding="utf-8", newline="") as file:
        return [int(row["id"]) for row in csv.DictReader(file)]


def stories(count: int, seed: int, *, plant: bool = True) -> Iterator[Story]:
    """Stories of Zipf-distributed pseudo-words; with `plant`, some are exact or near copies of an earlier story."""
    rng = random.Random(seed)
    vocabulary = draw_vocabulary(rng)
    zipf = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    originals: list[list[str]] = []
    openings = deque[list[str]](maxlen=RELATED)
    for story_id in range(FIRST_ID, FIRST_ID + count):
        fraction = rng.random() if plant and originals else 1.0
        if fraction < NEAR_SHARE + EXACT_SHARE:
            words = list(rng.choice(originals))
            if fraction < NEAR_SHARE:
                words[rng.randrange(len(words))] = rng.choice(vocabulary)
        else:
            words = rng.choices(vocabulary, cum_weights=zipf, k=int(rng.lognormvariate(*LOG_WORDS)))
            originals.append(words)
        yield Story(story_id, words, words is not originals[-1], tuple(openings))
        openings.append(words[:OPENING_WORDS])


def draw_vocabulary(rng: random.Random) -> list[str]:
    """VOCABULARY pseudo-words, the most frequent first, of which the list of common words knows the first COMMON."""
    drawn = ["".join(_syllables(rng)) for _ in range(VOCABULARY)]
    rare = are_rare(Text(" ".join(drawn)).word_hashes)
    common = set(np.flatnonzero(~rare)[:COMMON].tolist())
    return [drawn[place] for place in sorted(range(VOCABULARY), key=lambda place: place not in common)]


def _syllables(rng: random.Random) -> Iterator[str]:
    for _ in range(rng.randint(2, 4)):
        yield rng.choice(CONSONANTS) + rng.choice(MARKS)


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
