"""Disguises by elements, by styles and by order.

Junk stands in elements that show nothing, or is hidden by declarations in many forms and by rules of many kinds; stories
stand in elements that show their text in their own way, or their words in another order than they are shown in.
"""

import base64
import html
from collections.abc import Callable
from functools import partial
from random import Random
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


ROW = "gap:.3em;justify-content:start"
SHUFFLED = {  # a style for the line, and one for word number {n}, in row {row} and column {column}
    "order in a flex box": (f"display:flex;flex-wrap:wrap;{ROW}", "order:{n}"),
    "order in a grid": (f"display:grid;grid-template-columns:repeat(9,auto);{ROW}", "order:{n}"),
    "rows and columns": (f"display:grid;{ROW}", "grid-row:{row};grid-column:{column}"),
    "areas": (f"display:grid;{ROW}", "grid-area:{row} / {column}"),
    "negative areas": (
        f"display:grid;grid-template:repeat(60,auto) / repeat(9,auto);{ROW}",
        "grid-area:calc({row} - 61) / calc({column} - 10)",
    ),
    "lines with a name": (
        f"display:grid;grid-template:repeat(60,[a] auto) / repeat(9,[b] auto);{ROW}",
        "grid-row:a {row};grid-column:{column} b",
    ),
    "ends of areas": (f"display:grid;{ROW}", "grid-row-end:calc({row} + 1);grid-column-end:calc({column} + 1)"),
    "calculated order": (f"display:flex;flex-wrap:wrap;{ROW}", "order:calc({n} + 0)"),
    "positions": ("position:relative;height:20em", "position:absolute;left:{column}00px;top:{row}em"),
    "positions from the right": (
        "position:relative",
        "position:absolute;right:calc(1000px - {column}00px);top:{row}em",
    ),
    "positions from below": ("position:relative", "position:absolute;left:{column}00px;bottom:calc(40em - {row}em)"),
    "insets": ("position:relative", "position:absolute;inset:{row}em auto auto {column}00px"),
    "margins": ("position:relative", "position:absolute;margin:{row}em 0 0 {column}00px"),
    "translations": ("position:relative", "position:absolute;transform:translate({column}00px,{row}em)"),
}
REVERSED = {
    "row-reverse": (f"display:flex;flex-direction:row-reverse;{ROW}", ""),
    "flex-flow": (f"display:inline-flex;flex-flow:row-reverse;{ROW}", ""),
    "column-reverse": ("display:flex;flex-direction:column-reverse", ""),
    "a flex box to the left": (f"display:flex;direction:rtl;{ROW}", ""),
    "boxes to the left": ("direction:rtl", "display:inline-block;margin-left:.3em"),
    "floats": ("overflow:auto", "float:right;margin-left:.3em"),
}
COLUMNS = 9


def _arranged(line_style: str, word_style: str, *, is_shuffled: bool) -> Callable[[str, Language], str]:
    def page(text: str, _: Language) -> str:
        chance, out = Random(1), []
        for line in lines_of(text):
            words = list(enumerate(line.split()))
            if is_shuffled:
                chance.shuffle(words)
            else:
                words.reverse()
            spans = "".join(f"<span style='{_placed(word_style, n)}'>{html.escape(word)}</span>" for n, word in words)
            out.append(f"<div style='{line_style}'>{spans}</div>")
        return "".join(out)

    return page


def _placed(style: str, n: int) -> str:
    return style.format(n=n, row=n // COLUMNS + 1, column=n % COLUMNS + 1)


def _named_areas(text: str, _: Language) -> str:
    """Words in any order, each in the area of its name."""
    chance, out = Random(1), []
    for line in lines_of(text):
        words = list(enumerate(line.split()))
        rows = [" ".join(f"w{n}" for n, _ in words[at : at + COLUMNS]) for at in range(0, len(words), COLUMNS)]
        rows[-1] += " ." * (-len(words) % COLUMNS)
        chance.shuffle(words)
        spans = "".join(f"<span style='grid-area:w{n}'>{html.escape(word)}</span>" for n, word in words)
        areas = " ".join(f'"{row}"' for row in rows)
        out.append(f"<div style='display:grid;grid-template-areas:{areas};{ROW}'>{spans}</div>")
    return "".join(out)


def _filled_by_columns(text: str, _: Language) -> str:
    """The words of each column of a grid, one column after the other."""
    out = []
    for line in lines_of(text):
        words = line.split()
        rows = -(-len(words) // COLUMNS)
        words += [""] * (rows * COLUMNS - len(words))
        spans = "".join(f"<span>{html.escape(word)}</span>" for n in range(COLUMNS) for word in words[n::COLUMNS])
        style = f"display:grid;grid-auto-flow:column;grid-template-rows:repeat({rows},auto);{ROW}"
        out.append(f"<div style='{style}'>{spans}</div>")
    return "".join(out)


def _reversed_letters(text: str, _: Language) -> str:
    """Each word as a flex box of letters."""

    def box(word: str) -> str:
        letters = "".join(f"<i>{html.escape(letter)}</i>" for letter in reversed(regex.findall(r"\X", word)))
        return f"<span style='display:inline-flex;flex-direction:row-reverse'>{letters}</span>"

    return "".join(f"<p>{' '.join(map(box, line.split()))}</p>" for line in lines_of(text))


def _floating_letters(text: str, _: Language) -> str:
    """Each word as a box of letters that float to the right."""

    def box(word: str) -> str:
        letters = "".join(
            f"<i style='float:right'>{html.escape(letter)}</i>" for letter in reversed(regex.findall(r"\X", word))
        )
        return f"<span style='display:inline-block'>{letters}</span>"

    return "".join(f"<p>{' '.join(map(box, line.split()))}</p>" for line in lines_of(text))


def _shuffled_words(shown: str, around: str) -> Callable[[str, Language], str]:
    """Words in any order, each shown as markup by its number; the markup around them has a slot for each."""

    def page(text: str, _: Language) -> str:
        chance, out = Random(1), []
        for line in lines_of(text):
            words = list(enumerate(line.split()))
            slots = " ".join(f"<slot name=s{n}></slot>" for n, _ in words)
            chance.shuffle(words)
            marked = "".join(shown.format(html.escape(word), n=n, x=n % 9 * 99, y=n // 9 * 20) for n, word in words)
            out.append(around.format(marked, slots=slots))
        return "".join(out)

    return page


order = partial(Disguise, "order")

BY_ORDER = (
    *(order(name, _arranged(*styles, is_shuffled=True)) for name, styles in SHUFFLED.items()),
    *(order(name, _arranged(*styles, is_shuffled=False)) for name, styles in REVERSED.items()),
    order("areas with a name", _named_areas),
    order("cells filled by columns", _filled_by_columns),
    order("letters in flex boxes", _reversed_letters),
    order("letters that float", _floating_letters),
    order(
        "named slots",
        _shuffled_words("<b slot=s{n}>{}</b>", "<div><template shadowrootmode=open>{slots}</template>{}</div>"),
    ),
    order("texts of svg", _shuffled_words("<text x={x} y={y}>{} </text>", "<svg>{}</svg>")),
)


DECLARATIONS = {
    "mask: none left": "mask:linear-gradient(#0000,#0000)",
    "-webkit-mask-image": "-webkit-mask-image:linear-gradient(transparent,transparent)",
    "mask-size 0": "display:inline-block;mask:linear-gradient(#000,#000) no-repeat;mask-size:0 0",
    "mask url": "mask:url(#nothing)",
    "clip-path circle": "display:inline-block;position:absolute;clip-path:circle(0)",
    "clip-path circle at": "position:absolute;clip-path:circle(0px at 50% 50%)",
    "clip-path polygon": "position:absolute;clip-path:polygon(0 0)",
    "clip-path polygon points": "position:absolute;clip-path:polygon(5px 5px, 5px 5px, 5px 5px)",
    "clip-path inset one side": "position:absolute;clip-path:inset(0 100% 0 0)",
    "clip-path inset bottom": "position:absolute;clip-path:inset(0 0 100%)",
    "clip-path rect": "position:absolute;clip-path:rect(0 0 0 0)",
    "clip-path xywh": "position:absolute;clip-path:xywh(0 0 0 0)",
    "clip-path path": "position:absolute;clip-path:path('M0 0')",
    "clip-path inset px": "position:absolute;clip-path:inset(9999px)",
    "filter opacity(0)": "filter:opacity(0)",
    "filter opacity list": "position:absolute;filter:blur(1px) opacity(0%)",
    "filter blur": "position:absolute;filter:blur(90px)",
    "filter invert": "filter:invert(1)",
    "filter brightness": "filter:brightness(0) invert(100%)",
    "color-mix": "color:color-mix(in srgb, white 100%, black)",
    "color-mix transparent": "color:color-mix(in srgb, transparent 99%, black)",
    "relative colour": "color:rgb(from white r g b)",
    "relative alpha": "color:rgb(from red r g b / 0)",
    "hwb": "color:hwb(0 100% 0)",
    "color(srgb)": "color:color(srgb 1 1 1)",
    "display-p3": "color:color(display-p3 1 1 1)",
    "light-dark": "color:light-dark(white,black)",
    "system colour": "color:Canvas",
    "lab": "color:lab(100 0 0)",
    "fill colour": "-webkit-text-fill-color:#fff",
    "background-clip text": "background:white;-webkit-background-clip:text;color:transparent",
    "scaleX(0)": "position:absolute;transform:scaleX(0)",
    "scale3d": "position:absolute;transform:scale3d(0,0,0)",
    "scale property": "position:absolute;scale:0",
    "scale .001": "position:absolute;transform:scale(.001)",
    "matrix": "position:absolute;transform:matrix(0,0,0,0,0,0)",
    "rotateY": "position:absolute;transform:rotateY(90deg)",
    "rotateX turn": "position:absolute;transform:rotateX(.25turn)",
    "rotate3d": "position:absolute;transform:rotate3d(0,1,0,90deg)",
    "rotate property": "position:absolute;rotate:y 90deg",
    "backface": "position:absolute;backface-visibility:hidden;transform:rotateY(180deg)",
    "translate vw": "position:absolute;transform:translateX(-150vw)",
    "translate property": "position:absolute;translate:-3000px",
    "translate calc": "position:absolute;transform:translate(calc(-100vw - 100%))",
    "translate right fixed": "position:fixed;transform:translateX(200vw)",
    "skew": "position:absolute;transform:skewX(90deg)",
    "indent": "display:inline-block;width:0;text-indent:-9999px;white-space:nowrap",
    "indent overflow": "display:inline-block;width:1px;text-indent:100px;overflow:hidden;white-space:nowrap;vertical-align:top",
    "sr-only": "position:absolute;width:1px;height:1px;padding:0;margin:-1px;overflow:hidden;clip:rect(0,0,0,0);white-space:nowrap;border:0",
    "clip 1px": "position:absolute!important;clip:rect(1px 1px 1px 1px)",
    "fixed below": "position:fixed;top:200vh",
    "fixed bottom": "position:fixed;bottom:-100px",
    "absolute left -100%": "position:absolute;left:-100%;width:300px",
    "absolute left -600": "position:absolute;left:-600px;width:300px",
    "inset": "position:fixed;inset:-999px auto auto -999px",
    "right 100%": "position:absolute;right:100%;width:300px",
    "float margin": "float:left;margin-left:-2000px",
    "margin-right": "float:left;margin-right:100%;margin-left:-9999px",
    "max-height": "display:inline-block;max-height:0;overflow:hidden;vertical-align:top",
    "max-width": "display:inline-block;max-width:0;overflow:clip;white-space:nowrap",
    "overflow-x": "display:inline-block;width:0;height:0;overflow-x:hidden",
    "inline-size": "display:inline-block;inline-size:0;block-size:0;overflow:hidden",
    "block-size": "position:absolute;block-size:0;overflow:hidden",
    "height calc": "display:inline-block;height:calc(0px * 3);width:min(0px,5px);overflow:hidden",
    "width 0 line-height": "display:inline-block;width:0;line-height:0;overflow:hidden;white-space:nowrap;height:0",
    "flex 0": "display:inline-flex;width:0;overflow:hidden",
    "size-containment": "display:inline-block;contain:size;overflow:hidden;vertical-align:top",
    "scroll box": "display:inline-block;width:0;height:0;overflow:auto",
    "table-column": "display:table-column",
    "table-column-group": "display:table-column-group",
    "content url": "content:url(data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==)",
    "content-visibility": "display:inline-block;content-visibility:hidden;height:0;width:0",
    "visibility collapse": "visibility:collapse",
    "opacity calc": "opacity:calc(1 - 1)",
    "opacity .01": "opacity:.01",
    "opacity e": "opacity:1e-3",
    "font 1px": "font-size:1px",
    "font 0.1pt": "font:.1pt serif",
    "font var": "--z:0;font-size:calc(var(--z) * 1px)",
    "font shorthand var": "--z:0/1 serif;font:var(--z)",
    "margin shorthand var": "--z:0 0 0 -9999px;margin:var(--z)",
    "inset logical var": "--z:-9999px;position:absolute;inset-inline-start:var(--z)",
    "font clamp": "font-size:clamp(0px,0px,0px)",
    "font rem": "font-size:0rem",
    "font cqw": "font-size:0cqw",
    "a long sum": f"font-size:calc({' + '.join(['0px'] * 40)})",
    "run-in": "display:none;display:run-in",
    "font-size-adjust": "font-size-adjust:0",
    "all": "all:unset;display:none",
    "escaped": "displa\\79:n\\6fne",
    "upper": "DISPLAY:NONE;",
    "newline": "display\n:\nnone",
    "junk before": "color:;;;display:none",
    "broken before": "x{};display:none",
    "comment inside": "display:/*a*/none/*b*/;",
    "important order": "display:none!important;display:inline",
    "visibility hidden float": "visibility:hidden;position:absolute",
    "z-index": "position:absolute;z-index:-1;background:red;left:-99999px",
    "line-through cover": "text-decoration:line-through white 2em",
    "text-security": "-webkit-text-security:none;display:none",
    "animation": "animation:h 0s forwards",
    "animation paused": "animation:h 9s -9s paused both",
    "position sticky": "position:relative;left:-9999px;float:left;width:0;height:0",
    "zoom 0.0001": "zoom:0.0001",
    "offset-path": "position:absolute;offset-path:path('M-5000 -5000 L-5001 -5000')",
    "perspective": "position:absolute;transform:perspective(1px) translateZ(2px)",
}
KEYFRAMES = "@keyframes h{to{opacity:0;visibility:hidden}}"  # of the two animations
FAILING = (
    "(foo:bar)", "(max-aspect-ratio:1/1)", "(color:0)", "(update:none)", "(display-mode:fullscreen)",
    "(color-gamut:rec2020)", "(-moz-device-pixel-ratio:1)", "(-webkit-min-device-pixel-ratio:3)",
)  # fmt: skip
RULES = {  # attributes of the junk, and a style sheet
    **{
        f"@media {query}": ('class="x"', f".x{{display:none}}@media {query}{{.x{{display:inline}}}}")
        for query in FAILING
    },
    "unknown pseudo-class in a list": ('class="x"', ".x{display:none}.x,:foo{display:inline}"),
    "vendor's pseudo-element in a list": ('class="x"', ".x{display:none}.x,.x::-moz-foo{display:inline}"),
    "::first-line": ('class="x"', ".x{display:inline-block}.x::first-line{font-size:0}"),
    "a state that is not known": ('class="x"', ".x:not(:focus-visible){display:none}"),
    "after 2,000 others": ('class="x"', ".a{margin:0}" * 2_000 + ".x{display:none}"),
    "a doubt about all": ('class="x"', "body{filter:brightness(1)}.x{mask:linear-gradient(#0000,#0000)}"),
    "doubts about some words": (
        'class="x"',
        "p{filter:none}p :not(.x){rotate:0deg}.x{mask:linear-gradient(#0000,#0000)}",
    ),
    ":nth-child": ('class="x"', "span.x:nth-child(n){display:none}"),
    ":nth-of-type": ("", "p>span:nth-of-type(n+1){display:none}"),
    ":nth-child of": ('class="x"', "p :nth-child(n of .x){display:none}"),
    ":where": ('class="x"', ":where(.x,.y){display:none}"),
    ":is nested": ('class="x"', "p{&>:is(.x){display:none}}"),
    "attribute": ('data-q="Abc"', '[data-q^="ab" i]{display:none}'),
    "attribute contains": ('class="abc-x"', "[class*=c-]{display:none}"),
    "attribute lang": ('lang="xx-YY"', "[lang|=xx]{display:none}"),
    ":lang": ('lang="xx"', ":lang(xx){display:none}"),
    ":lang of an element around": ('class="x"', "</style><div lang='xx'><style>.x:lang(xx){display:none}"),
    ":dir": ('dir="rtl"', "span:dir(rtl){display:none}"),
    ":dir of all": ('class="x"', ".x:dir(ltr){display:none}"),
    ":not(:hover)": ('class="x"', ".x:not(:hover){display:none}"),
    ":not(:target)": ('class="x"', ".x:not(:target){display:none}"),
    ":defined": ('class="x"', ".x:defined{display:none}"),
    ":root": ('class="x"', ":root .x{display:none}"),
    ":empty sibling": ('class="x"', "p:not(:empty) .x{display:none}"),
    "escaped class": ('class="x1"', ".\\78 1{display:none}"),
    "id selector": ('id="a"', "span#a{display:none}"),
    "universal namespaces": ('class="x"', "*|*.x{display:none}"),
    "@supports": ('class="x"', "@supports (display:grid){.x{display:none}}"),
    "@supports not": ('class="x"', ".x{display:none}@supports not (display:grid){.x{display:inline}}"),
    "@supports unknown": ('class="x"', ".x{display:none}@supports (foo:bar){.x{display:inline}}"),
    "@supports selector": ('class="x"', "@supports selector(:has(a)){.x{display:none}}"),
    "@supports not, of a value": ('class="x"', "@supports not (display:foo){.x{display:none}}"),
    "@supports, of a value": ('class="x"', ".x{display:none}@supports (display:foo){.x{display:inline}}"),
    "@layer": ('class="x"', "@layer a{.x{display:none}}"),
    "@layer order": ('class="x"', "@layer a,b;@layer b{.x{display:none}}@layer a{.x.x.x{display:inline}}"),
    "@layer unlayered": ('class="x"', ".x{display:none}@layer a{p span.x{display:inline}}"),
    "@layer important": ('class="x"', "@layer a{.x{display:none!important}}.x{display:inline!important}"),
    "@container": ('class="x"', "body{container-type:inline-size}@container (min-width:10px){.x{display:none}}"),
    "@container not": (
        'class="x"',
        ".x{display:none}body{container-type:inline-size}@container (max-width:10px){.x{display:inline}}",
    ),
    "@scope": ('class="x"', "@scope (p){.x{display:none}}"),
    "@scope, :scope": ('class="x"', "@scope (body){:scope .x{display:none}}"),
    "nested in a distant element": ('class="x"', "body{.x{display:none}}"),
    ":not() of a distant element": ('class="x"', ":not(i) .x{display:none}"),
    "an attribute of any namespace": ('data-x="1"', "[*|data-x]{display:none}"),
    "@starting-style": ('class="x"', ".x{display:none}@starting-style{.x{display:inline}}"),
    "@media print show": ('class="x"', ".x{display:none}@media print{.x{display:inline}}"),
    "@media width": ('class="x"', "@media (width >= 300px){.x{display:none}}"),
    "@media hover": ('class="x"', "@media (hover:hover){.x{display:none}}"),
    "@media min-resolution": ('class="x"', "@media (min-resolution:.1dppx){.x{display:none}}"),
    "@media colour": ('class="x"', "@media (color){.x{display:none}}"),
    "@media not print": ('class="x"', "@media not print{.x{display:none}}"),
    "@media nested": ('class="x"', "@media screen{@media (min-width:1px){.x{display:none}}}"),
    "nested @media": ('class="x"', ".x{@media screen{display:none}}"),
    "@import data": ('class="x"', '@import "data:text/css,.x{display:none}";'),
    "@import url data": ('class="x"', '@import url("data:text/css;base64,Lnh7ZGlzcGxheTpub25lfQ==") screen;'),
    "@import of a layer": ('class="x"', '@import "data:text/css,.x{display:none}" layer(a) screen;'),
    "@import where supported": (
        'class="x"',
        '@import "data:text/css,.x{display:none}" supports(display:grid) (min-width:1px);',
    ),
    "@import where not supported": (
        'class="x"',
        '.x{display:none}@import "data:text/css,.x{display:inline}" supports(display:foo);',
    ),
    "comments around": ('class="x"', "<!-- .x{display:none} -->"),
    "charset first": ('class="x"', '@charset "utf-8";.x{display:none}'),
    "bad selector before": ('class="x"', "::foo,.x{display:inline}.x{display:none}"),
    "unclosed": ('class="x"', ".x{display:none"),
    "property registered": (
        'class="x"',
        '@property --d{syntax:"*";inherits:true;initial-value:none}.x{display:var(--d)}',
    ),
    "custom property chain": ('class="x"', ":root{--a:var(--b);--b:none}.x{display:var(--a)}"),
    "custom property space toggle": ('class="x"', ".x{--t: ;display:var(--t) none}"),
    "custom property in calc": ('class="x"', ".x{--n:0;opacity:calc(var(--n)*1)}"),
    "env": ('class="x"', ".x{font-size:env(foo,0px)}"),
    "inherit from custom": ('class="x"', "p{--v:hidden}.x{visibility:var(--v)}"),
    "if()": ('class="x"', ".x{display:if(else: none)}"),
    "grid of no width": ('class="x"', ".x{display:inline-grid;grid-template-columns:0;overflow:hidden}"),
    "grid collapse": ('class="x"', ".x{display:inline-grid;grid-template-rows:0fr;overflow:hidden;height:0;width:0}"),
    "overlay true": (
        'class="x"',
        '.x{position:relative}.x::after{content:"";position:absolute;inset:0;background:#fff}',
    ),
    "stacked in cell": (
        'class="x"',
        "p{position:relative}.x{position:absolute;left:0;top:0;z-index:-1}p{background:#fff;isolation:auto}",
    ),
    "animation rule": ('class="x"', ".x{animation:a 1ms both}@keyframes a{from{opacity:0}to{opacity:0}}"),
    "transition": ('class="x"', ".x{transition:opacity 1s;opacity:0}"),
    "white on white p": ('class="x"', "body{background:#fff}.x{color:#fffffe}"),
    "dark page": ('class="x"', "body{background:#111;color:#eee}.x{color:#111}"),
    "dark gradient page": ('class="x"', "body{background:linear-gradient(#111,#111);color:#eee}.x{color:#111}"),
    "revert-layer": ('class="x"', "@layer a{.x{display:none}}@layer b{.x{display:revert-layer}}"),
}

visibility = partial(Disguise, "hidden text")

HIDDEN_BY_STYLE = (
    *(visibility(name, hidden_junk(f'style="{style}"', KEYFRAMES)) for name, style in DECLARATIONS.items()),
    *(visibility(f"a rule: {name}", hidden_junk(attributes, sheet)) for name, (attributes, sheet) in RULES.items()),
)
