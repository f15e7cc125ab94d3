"""Disguises by elements: junk in those that show nothing, and stories in those that show their text in their own way."""

import base64
import html
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import regex
from neardup.records import Language

from tests.support.disguises import Disguise, hidden_junk, junk_of, lines_of, of_markup, of_words, paragraphs

Page = Callable[[str, Language], str]

SHEET = ".x{display:none}"
SHEET_OF_CHILD = ".x:has(u){display:none}"
GIF = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
JUNK_IN = {  # a word and junk
    "an element that has a child": "{} <span class=x>{}<u></u></span>",
    "an object that shows a picture": f"{{}} <object data='{GIF}'>{{}}</object>",
    "definitions of svg": "{} <svg width=0 height=0><defs><text>{}</text></defs></svg>",
    "svg of no size": "{} <svg width=0 height=0><text>{}</text></svg>",
    "svg that is not filled": "{} <svg width=1 height=1><text fill=none y=20>{}</text></svg>",
    "closed details": "{} <details style='display:inline'><summary style='display:none'></summary>{}</details>",
    "the host of a shadow": "{} <span><template shadowrootmode=open></template>{}</span>",
    "a CDATA section": "{} <![CDATA[{}]]>",
    "an instruction": "{} <?{}>",
    "a broken end tag": "{} </ {}>",
    "a white font": "{} <font color=ffffff>{}</font>",
    "a meter": "{} <meter>{}</meter>",
    "a phantom": "{} <math><mphantom><mtext>{}</mtext></mphantom></math>",
    "math outside of its texts": "{} <math>{}</math>",
    "svg outside of its texts": "{} <svg width=1 height=1><g>{}</g></svg>",
    "a marquee of no size": "{} <marquee width=0 height=0>{}</marquee>",
    "a box under another one": "{} <i style='position:relative'>{}<b style='position:absolute;inset:0;background:#fff'>"
    "</b></i>",
    "the second line of a low box": "<b style='display:inline-block;height:1.2em;overflow:hidden'>{}<br>{}</b>",
    "a block in a low box": "<b style='display:inline-block;max-height:1.2em;overflow:hidden'>{}"
    "<i style='display:block'>{}</i></b>",
    "a clamped line": "<b style='display:-webkit-inline-box;-webkit-line-clamp:1;-webkit-box-orient:vertical;"
    "overflow:hidden'>{}<br>{}</b>",
    "a box of no width under another one": "<i style='display:inline-block;width:0;white-space:nowrap'>{1}</i>"
    "<b style='position:relative;background:#fff;padding-right:9em'>{0}</b>",
    "the end of a narrow box": "<b style='display:inline-block;max-width:5em;overflow:hidden;white-space:nowrap'>{}"
    "<i style='padding-left:99em'></i>{}</b>",
}
STORY_IN = {
    "text with a shadow": "<p style='color:transparent;text-shadow:0 0 0 #000'>STORY</p>",
    "text with a background": "<p style='color:transparent;background:#000;-webkit-background-clip:text'>STORY</p>",
    "text with an outline": "<p style='color:transparent;-webkit-text-stroke:1px #000'>STORY</p>",
    "a box that is moved back": "<div style='margin-left:-2000px'><p style='margin-left:2000px'>STORY</p></div>",
    "a field": '<input value="STORY">',
    "a button of a form": '<input type=submit value="STORY">',
    "a placeholder": '<input placeholder="STORY">',
    "the placeholder of a textarea": '<textarea placeholder="STORY"></textarea>',
    "an option": "<select><option>STORY</option></select>",
    "a list box": "<select multiple><option>STORY</option></select>",
    "the label of an option": '<select size=4><option label="STORY"></option></select>',
    "an alternative text": '<img alt="STORY" src="no.png">',
    "a foreign object": "<svg><foreignObject width=900 height=300><p>STORY</p></foreignObject></svg>",
    "the string of a list": "<ul style='list-style:\"STORY\" inside'><li></ul>",
    "a symbol that is used": '<svg><symbol id=b><text y=20>STORY</text></symbol><use href="#b"/></svg>',
    "a script that is displayed": "<p></p><script type=text/plain style='display:block'>STORY</script>",
    "generated content": '<style>p::after{content:attr(data-t type(<string>))}</style><p data-t="STORY"></p>',
    "a marker of a list": '<style>li::marker{content:attr(data-t)}</style><ul><li data-t="STORY"></ul>',
    "the type of a list": "<ul style='list-style-type:\"STORY\"'><li></ul>",
    "the type of a list by a rule": "<style>li{LIST-STYLE/**/:'STORY'}</style><ul><li></ul>",
    "a quotation mark at the end, by a rule": "<style>q{quotes:'' 'STORY'}</style><q></q>",
    "generated content behind a stroke": '<style>p::before{content:"a / " attr(data-t) / "b"}</style>'
    '<p data-t="STORY"></p>',
    "a quotation mark": '<q style=\'quotes:"STORY" ""\'></q>',
    "closed details": "<details><summary>1</summary>STORY</details>",
    "a slot": "<div><template shadowrootmode=open>JUNK<slot></slot></template>STORY</div>",
    "a named slot": "<div><template shadowrootmode=open><slot name=a></slot></template>JUNK<p slot=a>STORY</p></div>",
    "the default of a slot": "<div><template shadowrootmode=open><slot name=a>STORY</slot></template>JUNK</div>",
    "an annotation that is displayed in the line": "<ruby><rt style='display:inline;font:inherit'>STORY</rt></ruby>",
    "nested shadows": "<div><template shadowrootmode=open><div><template shadowrootmode=closed><p>STORY</p></template>"
    "</div></template></div>",
}
PICTURES = {
    "src": '<img src="URL">',
    "srcset": '<img srcset="URL 1x">',
    "a source": '<picture><source srcset="URL"><img src="x"></picture>',
    "within svg": '<svg width=900 height=900><image href="URL"/></svg>',
    "a background": '<div style="height:9000px;background:url(URL)"></div>',
}
UNCLOSED = (
    "<style>",
    "<!--",
    "<template>",
    "<textarea>",
    "<plaintext>",
    "<p hidden>",
)  # in an element that shows nothing
SHOWN_LATER = {  # a rule for the story
    "an animation": "@keyframes a{to{opacity:1}}.s{opacity:0;animation:a 1ms forwards}",
    "a script": ".s{display:none}",
    "an unlayered rule": "@layer a{.s{display:none}}.s{display:block}",
    "an unsupported rule": ".s{display:block}@supports (foo:bar){.s{display:none}}",
    "a container": "body{container-type:inline-size}@container (max-width:10px){.s{display:none}}",
}


def _framed(markup: str, kind: str = "text/html", *, by_base64: bool = False) -> Page:
    """A page with the story in an address in place of URL."""

    def page(text: str, _: Language) -> str:
        inner = paragraphs(html.escape(text))
        if kind.startswith("image"):
            lines = enumerate(lines_of(text), 1)
            inner = "".join(f'<text y="{20 * n}">{html.escape(line)}</text>' for n, line in lines)
            inner = f'<svg xmlns="http://www.w3.org/2000/svg">{inner}</svg>'
        coded = base64.b64encode(inner.encode()).decode() if by_base64 else quote(inner)
        return markup.replace("URL", f"data:{kind};charset=utf-8{';base64' if by_base64 else ''},{coded}")

    return page


def _after_junk(page: Page) -> Page:
    """A page that shows some junk too, in front of the story."""
    return lambda text, language: f"<h3>{' '.join(junk_of(language))[:120]}</h3>{page(text, language)}"


def _slotted(sheet: str) -> Page:
    """A page of shadow trees in which only the words of the story are shown."""

    def page(text: str, language: Language) -> str:
        words, out = iter(junk_of(language) * 99), []
        for line in lines_of(text):
            light = " ".join(f"<b>{html.escape(word)} </b><i>{next(words)}</i>" for word in line.split())
            shadow = f"<template shadowrootmode=open><style>{sheet}</style><slot></slot></template>"
            out.append(f"<div>{shadow}{light}</div>")
        return "".join(out)

    return page


def _around_a_letter(markup: str) -> Page:
    """A page with this markup around the second letter of each word, and the marks on it."""
    letter = regex.compile(r"(?<=\p{L}\p{M}*)\p{L}\p{M}*")
    return of_words(lambda word, _: word if "&" in word else letter.sub(lambda tag: markup.format(tag[0]), word, 1))


def _after_noscript(markup: str, text: str, _: Language) -> str:
    return f"<noscript>{markup}</noscript>{paragraphs(html.escape(text))}"


def _beside(markup: str, word: str, junk: str) -> str:
    return markup.format(word, junk) if junk else word


def _after_first_letter(text: str, language: Language) -> str:
    """A page whose words have another letter in front, which is not shown."""
    letter = junk_of(language)[0][0]
    style = "<style>.w{display:inline-block}.w::first-letter{font-size:0}</style>"
    return style + of_words(lambda word, _: f"<span class=w>{letter}{word}</span>")(text, language)


def _counted(text: str, _: Language) -> str:
    """A page whose words are the signs of a counter."""
    words = [word for word in text.split() if not {'"', "\\"} & set(word)]
    signs = " ".join(f'"{word}"' for word in words)
    style = f"<style>@counter-style s{{system:fixed;symbols:{signs};suffix:' '}}li{{float:left}}</style>"
    return f"{style}<ol style='list-style:s inside'>{'<li></li>' * len(words)}</ol>"


def _many_tags(text: str, language: Language) -> str:
    return "<b></b>" * 50_001 + hidden_junk("class=x", SHEET)(text, language)


def _linked(address: str) -> Page:
    """A page whose style sheet stands in an address."""
    return lambda text, language: f'<link rel=stylesheet href="{address}">{hidden_junk("class=x")(text, language)}'


hidden, shown = partial(Disguise, "hidden text"), partial(Disguise, "shown text")

BY_ELEMENT = (
    *(hidden(name, of_words(partial(_beside, markup), SHEET_OF_CHILD)) for name, markup in JUNK_IN.items()),
    hidden("a style sheet in an address", _linked(f"data:text/css,{SHEET}")),
    hidden("a style sheet in Base64", _linked(f"data:text/css;base64,{base64.b64encode(SHEET.encode()).decode()}")),
    hidden("what a shadow tree hides in its slot", _slotted("::slotted(i){display:none}")),
    hidden("a letter before each word", _after_first_letter),
    hidden("junk behind more tags than are read", _many_tags),
    *(shown(name, of_markup(markup)) for name, markup in STORY_IN.items()),
    *(shown(name, _after_junk(of_markup("<p class=s>STORY</p>", sheet))) for name, sheet in SHOWN_LATER.items()),
    *(shown(f"{tag} in noscript", partial(_after_noscript, tag)) for tag in UNCLOSED),
    shown("a superscript in each word", _around_a_letter('<sup style="font:inherit;vertical-align:baseline">{}</sup>')),
    shown("signs of a counter", _counted),
    shown(
        "words as signs of a list",
        of_words(lambda word, _: f"<li style='list-style:\"{word}\" inside;float:left'></li>"),
    ),
    shown("words in alternative texts", of_words(lambda word, _: f'<img alt="{word}">')),
    shown("words in fields", of_words(lambda word, _: f'<input value="{word}">')),
    shown(
        "words in superscripts", of_words(lambda word, _: "".join(f"<sup style='all:unset'>{c}</sup>" for c in word))
    ),
    shown("a frame", _framed('<iframe src="URL"></iframe>')),
    shown("a frame in Base64", _framed('<iframe src="URL"></iframe>', by_base64=True)),
    shown("an object", _framed('<object data="URL"></object>')),
    shown("an embedded page", _framed('<embed src="URL">')),
    *(shown(f"a picture: {name}", _framed(markup, "image/svg+xml")) for name, markup in PICTURES.items()),
)
