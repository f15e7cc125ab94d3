"""Writes texts as HTML pages: with plain markup, and with markup that differs as much as possible."""

import html

HEAD = '<!DOCTYPE html><html><head><meta charset="utf-8"><title>A story</title>'
EMPHASISED = 7  # every seventh word is emphasised
SPLIT = 11  # every eleventh word has a tag inside
OTHER_HEAD = (
    "<!doctype html>\n<HTML><HEAD><META charset=utf-8><style>p { margin: 0 }</style>"
    '<script>window.data = [{"words": "not the story"}];</script>'
)


def plain(text: str) -> str:
    """Write each line as a paragraph."""
    lines = "".join(f"<p>{html.escape(line)}</p>\n" for line in text.splitlines() if line.strip())
    return f"{HEAD}</head><body>\n{lines}</body></html>"


def ornate(text: str) -> str:
    """Write the same words with character references, tags within words, attributes, comments and hidden parts."""
    lines = "<br><br>".join(" ".join(map(_word, enumerate(line.split()))) for line in text.splitlines())
    return (
        f'{OTHER_HEAD}</HEAD><BODY onload="start()"><div hidden>A hidden part.</div>\n'
        f'<div class="content" style="text-align:justify"><!-- the story -->{lines}</div></BODY></HTML>'
    )


def _word(numbered: tuple[int, str]) -> str:
    n, word = numbered
    half = len(word) // 2
    first, second = (
        html.escape(part).encode("ascii", "xmlcharrefreplace").decode() for part in (word[:half], word[half:])
    )
    if n % SPLIT == 0:
        return f"{first}<span class=x>{second}</span>"
    if n % EMPHASISED == 0:
        return f'<em title="a &gt; b">{first}{second}</em>'
    return first + second
