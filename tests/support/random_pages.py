"""Random pages of a story: what authors, editors and templates write, and what breaks it; and pieces of such pages."""

from random import Random

from neardup.core.text.extraction import Extraction

from tests.support.languages import SAMPLED, TEXTS

INVISIBLE = (
    "head, script, style, template, noscript, iframe, select, audio, canvas, datalist, noembed, noframes, rp, rt,"
    " title, video, meter, progress"
)
BLOCKS = (
    "address, article, aside, blockquote, br, caption, center, dd, details, div, dl, dt, fieldset,"
    " figcaption, figure, footer, form, h1, h2, h3, h4, h5, h6, header, hr, legend, li, main, menu, nav, ol,"
    " option, p, pre, section, summary, table, td, th, tr, ul, dir, hgroup, listing, optgroup, plaintext, search, xmp"
)
INLINE = "html, body, a, b, i, em, span, font, img, wbr, input, label, tbody, colgroup, ruby, object, frameset, x-y"
TAGS = [name for names in (INVISIBLE, BLOCKS, INLINE) for name in names.split(", ") if name.replace("-", "").isalnum()]
WORDS = [text[:3] for text in TEXTS.values()] + ["x", "क\u094d\u200dष", "ÿ", " ", "\n", "&amp;", "&#2361;", "&nbsp;"]
BROKEN = ["&#0;", "&#xd800;", "&nosuch;", "<", "</", "<!-- x -->", "<!--", "-->", "<![CDATA[x]]>", "<?x", "\0"]
NOISE = ["\x01", "\x92", "\ufffd", "\ufeff"]


STORY = Extraction("article .story")
ICON = '<svg class=icon viewBox="0 0 16 16"><path d="M8 1l2 5h5z"/></svg>'
BUTTONS = "".join(
    f"<button class=btn>{ICON}<span class=reader-only>{name}</span></button>" for name in ("Like", "Save")
)
SHEET = """
body { margin: 0; color: #222; background: #fff } header { display: flex; justify-content: space-between }
nav ul { display: flex; list-style: none } .btn { display: inline-flex; color: #fff; background: #06c }
.menu { position: absolute; display: none; right: 0 } .menu.open { display: block }
.modal { position: fixed; inset: 0; display: none; background: rgba(0, 0, 0, .5) } .modal.show { display: flex }
.reader-only { position: absolute; width: 1px; height: 1px; overflow: hidden; clip: rect(0, 0, 0, 0) }
.page { display: grid; grid-template-columns: 1fr 20em } article { max-width: 700px } .story p { margin: 0 0 1em }
.comment { border-top: 1px solid #eee } .comment .name::before { content: "by " } .related { display: grid }
.card .title { white-space: nowrap; overflow: hidden } footer { color: #ccc; background: #222 } footer a { color: #fff }
@media (max-width: 600px) { .story { display: none } } @media print { article { display: none } }
"""
COMMENT = f'<div class=comment><b class=name>A reader</b><div style="display: none">{ICON}</div><p>A comment</p></div>'


def in_template(story: str, sheet: str = SHEET) -> str:
    """The markup of a story -> that of a page of the site, on which STORY finds it."""
    return (
        f"<!doctype html><html lang=en><head><title>A story</title><link rel=icon href='data:,'><style>{sheet}</style>"
        f"</head><body><header><a href=/>{ICON} A site</a><nav><ul><li>Home<li>Writers</ul></nav><div class=menu>"
        f"{BUTTONS}</div></header><div class=page><article><h1>A title</h1>{BUTTONS}<div class=story>{story}</div>"
        f"{BUTTONS}</article><aside class=related><div class=card><p class=title>Another story</p></div></aside></div>"
        "<dialog>Sign in</dialog><div class=modal hidden><input placeholder='An address at which we reach you'></div>"
        f"<section>{COMMENT * 3}<textarea></textarea></section><footer><a href=/about>About</a></footer></body></html>"
    )


HARMLESS = (
    "text-align:justify",
    "color:#333",
    "font-size:14px",
    "margin:0 0 1em",
    "font-weight:bold; line-height:1.8",
    "",
)
HIDING = (
    "display:none",
    "position:absolute; left:-9999px",
    "color:white",
    "font-size:0",
    "float:right",
    "quotes: 'a' 'b'",
)
SHEETS = ("p { margin: 0 }", "body { font-family: serif } h1 { font-size: 2em }", ".b { color: #222 }", "")
ACTING_SHEETS = (".x { display: none }", "p::before { content: 'x' }", "@counter-style a { symbols: 'b' }")
ATTRIBUTES = (
    ' class="x y"', ' id=q', ' href="/a?c=d&amp;e"', " title='a<p>b'", " lang=hi", " align=center", " DIR=ltr",
    " data-x=1", " onclick", " checked", " color=red", " color=#fff", " bgcolor='#eee'", " text=blue", " hidden",
    ' href="data:text/html,x"', ' src="data:image/png;base64,aa"', ' src=" DATA:,x"', ' data="data:x"', " dir=rtl",
    f" alt='{'long ' * 9}'", f" value='{'दीर्घ ' * 9}'", " placeholder=x", " srcdoc='<p>x'", " shadowrootmode=open",
    " popover", " alt='a picture'",
)  # fmt: skip
PECULIAR = ("bdo", "button", "dialog", "marquee", "math", "svg", "textarea")
INLINE_TAGS = [*INLINE.split(", "), "sup", "sub", "strong", "u"]
ODD_TAGS = [*INVISIBLE.split(", "), *BLOCKS.split(", ")]
STORY_BLOCKS = ("p", "p", "p", "div", "li", "blockquote", "h2", "td", "section", "article", "pre", "dd")
PIECES = (
    "<script>var a='<p>';</script>", "<noscript><p>no</p></noscript>", "<img alt=x src=/a.png>", "<ul><li>a<li>b</ul>",
    "<table><tr><td>1<td>2</table>", "<select><option>a<option>b</select>", "<video>v</video>", "<hr/>", "</p>",
    "<iframe src=/x></iframe>", "<form><input value=go></form>", "<template><p>t</p></template>", "<plaintext>",
    "<ruby>x<rt>y</rt></ruby>", "<details><summary>s</summary>d</details>", "</br>", "<p><table><tr>a", "<?php x ?>",
    "<b><p>x</b>y</p>", "<a><a>", "<frameset>", "</body>", "<html class=z>", "<body bgcolor=white>", "<title>u</title>",
    *BROKEN,
)  # fmt: skip
HEADS = (
    "<style>.menu, .y { display: none }</style><nav><button>Menu</button><svg></svg></nav><article class=x>",
    "<style>main { color: #222 } body > div:first-child { width: 0 }</style><div hidden>x</div><div><article>",
    "<link href='data:text/css,p{color:red}' rel=stylesheet><div style='display: flex'><ul class=menu><li>x</ul>",
    "<div style='display: none'>x</div><main style='color: white'><article>", "<body dir=rtl><table><td class=x>",
    "", "<!doctype html>", "<!DOCTYPE html><html><head><meta charset=utf-8><title>A &amp; b</title></head><body>",
    "<!doctype html><head><title></title></head><body class=a>", "<html><head></head><body><h1>Head <i>line</i></h1>",
    '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2//EN"><title>t', "\ufeff<!doctype html>", "<noscript><title>n</title>",
    "<!-- c --><!doctype html>", "\x0b<!doctype html>", "\f <!doctype html>", "</ ><!doctype html>",
    "<?x?><!doctype html>",
    "x<!doctype html>", "</p><!doctype html>", "<!doctype html SYSTEM 'about:legacy-compat'>",
)  # fmt: skip
SIGNS = (
    "&nbsp;", "&#8205;", "&#0;", "&#xd800;", "\u00a0", "\u200d", "\u200c", "\ufffd", "\u202e", "é", "\U0001f600",
    "\x01",
)  # fmt: skip
SUPERSCRIPTS = ("1", "[2]", "a", "th", "२", "ab", "")


def random_page(random: Random, *, oddity: float = 0.01) -> bytes:
    """A page with a story in one of the languages; about `oddity` of its parts are not what they should be."""
    words = TEXTS[random.choice(SAMPLED)].split()
    parts = [_part(random, words, oddity) for _ in range(random.randint(1, 12))]
    page = random.choice(HEADS) + "".join(parts) + random.choice(("", "</body></html>", "\n"))
    body = page.encode()
    return body if random.random() > oddity else _damaged(random, body)


def _part(random: Random, words: list[str], oddity: float) -> str:
    written = " ".join(_word(random, word, oddity) for word in random.choices(words, k=random.randint(1, 80)))
    if random.random() < oddity:
        written += random.choice(PIECES)
    if random.random() < 0.05:
        written += f"<style>{random.choice(ACTING_SHEETS if random.random() < oddity else SHEETS)}</style>"
    tag = random.choice(STORY_BLOCKS if random.random() > oddity else (*ODD_TAGS, *PECULIAR))
    closing = f"</{tag}>" if random.random() > oddity else ""
    return f"<{tag}{_attribute(random, oddity)}>{written}{closing}\n"


def _word(random: Random, word: str, oddity: float) -> str:
    drawn = random.random()
    if drawn < 0.01:
        return f"<{(tag := random.choice(INLINE_TAGS))}{_attribute(random, oddity)}>{word}</{tag}>"
    if drawn < 0.015:
        return f"{word}<sup>{random.choice(SUPERSCRIPTS)}</sup>{random.choice(('', ' ', 'x', 'क', '<br>', '<p>'))}"
    if drawn < 0.02:
        return f"{word}<br>"
    return word + random.choice(SIGNS) if drawn < 0.02 + oddity else word


def _attribute(random: Random, oddity: float) -> str:
    if random.random() < 0.5:
        return ""
    if random.random() < 0.5:
        return f" style='{random.choice(HIDING if random.random() < oddity else HARMLESS)}'"
    return random.choice(ATTRIBUTES if random.random() < 5 * oddity else ATTRIBUTES[:7])


def _damaged(random: Random, body: bytes) -> bytes:
    at = random.randrange(len(body))
    return random.choice((body[:at], body[:at] + b"\xe0\xa4" + body[at:], body[:at] + random.randbytes(3) + body[at:]))
