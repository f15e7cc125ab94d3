"""Random pages of which style sheets, attributes and rarer elements decide what is shown."""

from random import Random

from tests.support.rendered_pages import DECLARATIONS as HIDING
from tests.support.rendered_pages import SELECTORS as RARE_SELECTORS

TAGS = (
    "main", "div", "span", "b", "i", "a", "section", "article", "h2", "li", "ul", "button", "p", "p", "td", "table",
    "svg", "g", "path", "title", "script", "nav", "label", "select", "option", "textarea", "iframe", "font", "x-y",
    "sup", "details", "summary", "figure", "math", "mi", "noscript", "video", "center", "dialog", "pre", "form",
)  # fmt: skip
VOID = ("br", "img", "input", "hr", "wbr", "source", "link")
SELECTORS = (
    "html", "body", "div", "p", "span", "a", "b", ".a", ".b", ".c", "#x", "div.a", "div .b", "main > .a", ".a > .b .c",
    "* .c", ".a.b", "li", "button", ".A", "svg", "img", "title", "input", "body > *", "ul > li.a",
)  # fmt: skip
ACTING = (
    "display:flex", "display:inline-flex", "display:grid", "display:inline-block", "display:block", "display:none",
    "flex-flow:row wrap-reverse",
    "flex-direction:row-reverse", "flex-direction:column-reverse", "order:1", "order:-2", "position:absolute",
    "position:absolute; left:5px; top:30px", "position:fixed; right:3px; bottom:2px", "position:absolute; top:9px",
    "position:fixed; top:0; left:0; right:0; bottom:0; background:#fff", "float:right", "float:left", "direction:rtl",
    "white-space:nowrap; overflow:hidden; width:90px", "height:1em; overflow:hidden", "overflow:hidden",
    "-webkit-line-clamp:1", "animation:a 1s", "text-shadow:0 0 1px", "background:#111", "background:url(a.png)",
    "opacity:.2", "text-indent:-9999px", "font-size:3px", "color:#fff", "--d:none", "display:var(--d)",
    "content:url(a.png)", "quotes:'a' 'b'", "font-family:'A long name of letters'", "margin:0", "color:#222",
    "clip:rect(0,0,0,0); position:absolute", "width:1px; overflow:hidden", "z-index:-1", *HIDING,
)  # fmt: skip
GENERATED = ("content:'by ';", "content:'';", "content:'a\\201c  b'; display:block;", "content:attr(title);")
ATTRIBUTES = (
    " alt=picture", " alt", " label='a label'", " dir=ltr", " dir=rtl", " hidden", " popover", " open", " bgcolor=#eee",
    " bgcolor=black", " color=white", " value='a value'", " placeholder='what to write'", " type=hidden", " title=t",
    " type=checkbox", " width=10", " height=0", " fill=none", " visibility=hidden", " href=/a", " src=/a.png",
    " href='data:text/html,x'", " src='data:image/svg+xml,x'", " data='data:,x'", " srcdoc='<p>x'", " multiple",
)  # fmt: skip
TEXTS = (
    "one",
    "two three",
    " four ",
    "\n",
    " ",
    "हिन्दी कथा",
    "five\tsix\r\n seven",
    "\u00a0",
    "&nbsp;",
    "a &lt; b",
    "मल",
    "<!-- c -->",
)
RARE_TEXTS = ("\ufffd", "\u202eabc", "\v", "&#11;", "<template><p>t</p></template>", "<text>t</text>")


def styled_page(random: Random, *, oddity: float = 0.02) -> bytes:
    """A page; about `oddity` of its parts are what only the reference of the native core renders."""
    sheets = "".join(f"<style>{_sheet(random, oddity)}</style>" for _ in range(random.randint(0, 2)))
    doctype = random.choice(("<!doctype html>", "<!doctype html>", ""))
    body = "".join(_element(random, 0, oddity) for _ in range(random.randint(1, 6)))
    return f"{doctype}<html><head><title>t</title>{sheets}</head><body{_attributes(random, oddity)}>{body}".encode()


def _sheet(random: Random, oddity: float) -> str:
    return "".join(_rule(random, oddity) for _ in range(random.randint(1, 8)))


def _rule(random: Random, oddity: float) -> str:
    selector = random.choice(RARE_SELECTORS if random.random() < 5 * oddity else SELECTORS)
    if random.random() < oddity:
        selector += random.choice(("::first-letter", ":hover", "::marker"))
    generated = random.choice(GENERATED) if random.random() < 0.1 else ""
    if generated:
        selector += random.choice(("::before", "::after"))
    style = generated + ";".join(random.choice(ACTING) for _ in range(random.randint(1, 2)))
    return f"{selector} {{ {style} }}"


def _element(random: Random, depth: int, oddity: float) -> str:
    drawn = random.random()
    if drawn < 0.3 or depth > 5:
        return random.choice(RARE_TEXTS if random.random() < oddity else TEXTS)
    if drawn < 0.4:
        return f"<{random.choice(VOID)}{_attributes(random, oddity)}>"
    tag = random.choice(TAGS[:20] if random.random() > 5 * oddity else TAGS)
    within = "".join(_element(random, depth + 1, oddity) for _ in range(random.randint(0, 5)))
    return f"<{tag}{_attributes(random, oddity)}>{within}</{tag}>"


def _attributes(random: Random, oddity: float) -> str:
    written = ""
    if random.random() < 0.4:
        written += f" class='{' '.join(random.choices(('a', 'b', 'c', 'd'), k=random.randint(1, 2)))}'"
    if random.random() < 0.05:
        written += " id=x"
    if random.random() < 0.1:
        written += f' style="{random.choice(ACTING)}"'
    if random.random() < 5 * oddity:
        written += random.choice(ATTRIBUTES)
    return written
