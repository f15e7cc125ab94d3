"""Stories to compare: the samples, and texts of characters that a careless cut would separate from their grapheme."""

import pytest
from hypothesis import strategies as st
from neardup.config import Thresholds
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.core.verify.text import Text
from neardup.query.compare import LoadedStory

from tests.support.graphemes import GRAPHEME_PARTS
from tests.support.languages import SAMPLED, TEXTS
from tests.support.paths import SAMPLES
from tests.support.samples import TRUTH

STORY = Extraction("article .story, div.post-body", (".share", ".author-note"))
THRESHOLDS = Thresholds()
every_language = pytest.mark.parametrize("language", SAMPLED)
every_planted_pair = pytest.mark.parametrize("pair", TRUTH, ids=lambda pair: f"{pair['kind']}-{pair['a']}-{pair['b']}")
_pieces = [*GRAPHEME_PARTS, *(word for text in TEXTS.values() for word in text.split())]
wild_texts = st.lists(st.sampled_from(_pieces), max_size=8).map("".join)


def story_of(text: str, **known: object) -> LoadedStory:
    return LoadedStory(Text(text), known)


def sample(story_id: int) -> LoadedStory:
    [page] = (SAMPLES / "stories").glob(f"*/{story_id}.html")
    return story_of(extract_page_text(page.read_bytes(), None, STORY))
