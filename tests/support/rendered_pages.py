"""Generated pages whose styles hide, show, break and join texts, and what Chromium shows of them."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser


TAGS = [
    "main",
    "div",
    "span",
    "b",
    "i",
    "em",
    "a",
    "section",
    "article",
    "h2",
    "li",
    "ul",
    "button",
    "code",
    "center",
    "blockquote",
    "font",
]
PIECES = ["ab", "cd", "kana", "क", "हिन्दी", "മല", " ", "  ", "e f", " gh ", "ij "]
WORDS = ("ab", "cd ", " ef", "gh ij", "कथा", "")
BOXES = ("", "display:flex", "display:inline-flex", "display:grid", "position:absolute", "position:fixed", "float:left")
SELECTORS = [
    "h2", "div", ".a", ".b", "#x", "span.a", "main .b", "div > *", "*", ".a, #x", ":not(.a)", "b:first-child", "i + b",
    "[title]", "div:hover", ":is(b, .b)", "div::first-line", "section ~ div", "body span", "html .a.b",
    "ul li:nth-child(2n)",
]  # fmt: skip
DECLARATIONS = [
    "display:none", "display:block", "display:inline", "display:inline-block", "display:contents", "display:list-item",
    "DISPLAY : None", "display:/**/none", "d\\69splay:none", "display:bogus", "display:none !important",
    "display:initial", "display:unset", "display:revert", "display: var(--d)", "--d: none",
    "--d:block", "--d:initial", "--d:inherit", "display:VAR(--d, none)", "display:var(--e, none)",
    "visibility:hidden", "visibility:visible", "visibility:collapse",
    "visibility:inherit", "visibility: Hidden ! important", "visibility:initial", "visibility:var(--v,hidden)",
    "font-size:0", "font-size:0px", "font-size:16px", "font-size:1em", "font:0/0 a", "font:12px serif", "font-size:0%",
    "font-size:medium", "font-size:-1px", "opacity:0", "opacity:1", "opacity:0%", "opacity:.001", "opacity:.5",
    "color:transparent", "color:rgba(0,0,0,0)", "color:#0000", "color:black", "color:inherit", "color:hsl(0 0% 0% / 0)",
    "color:nothing", "-webkit-text-fill-color:transparent", "-webkit-text-fill-color:red",
    "position:absolute;left:-9999px", "position:absolute;top:-9999px", "position:fixed;left:-200vw",
    "position:relative;left:5px", "left:-9999px", "transform:scale(0)", "height:0;overflow:hidden",
    "width:0;height:0;overflow:hidden", "max-height:0;overflow:hidden", "position:absolute;clip:rect(0,0,0,0)",
    "clip-path:inset(100%)", "clip-path:inset(50%)", "text-align:center", "margin:0", "content:'x'",
    "filter:opacity(0)", "all:unset", "all:initial;display:block",
]  # fmt: skip
UNPADDED = "<style>button, hr { padding: 0; border: 0 }</style>"  # a padded box of no height still shows its text
WRAPPERS = ["{}", "{}", "{}", "@media screen {{ {} }}", "@media print {{ {} }}", "@media (min-width: 99px) {{ {} }}"]
WRAPPERS += ["@supports (display: grid) {{ {} }}", "@media (max-width: 99px) {{ {} }}"]

# Takes what cannot be seen out of each page, by the styles and boxes that Chromium computed, and reads the rest.
READ = """
([pages, selector]) => {
  const frame = document.createElement("iframe");
  frame.width = 1280; frame.height = 720;
  document.body.append(frame);
  const isTransparent = colour => /^rgba\\(.*, 0\\)$/.test(colour);
  const hide = element => element.style.setProperty("display", "none", "important");
  const read = page => {
    const inside = frame.contentDocument;
    inside.open(); inside.write(page); inside.close();
    const window = inside.defaultView, changes = [];
    const isUnseen = (element, style) => {
      if (element.tagName === "BR") return false;  // it has no box
      const isInline = style.display === "inline" && element.tagName !== "BUTTON";
      const box = element.getBoundingClientRect();
      const isPlaced = style.position === "absolute" || style.position === "fixed";
      return (style.position !== "static" && (box.right <= 0 || box.bottom <= 0) && box.left + box.top < -900)
          || (!isInline && style.transform === "matrix(0, 0, 0, 0, 0, 0)")
          || (!isInline && element !== inside.body && element !== inside.documentElement
              && style.overflow === "hidden" && (box.width < 2 || box.height < 2))
          || (isPlaced && style.clip.startsWith("rect(0px, 0px, 0px, 0px"))
          || /inset/.test(style.clipPath);
    };
    // Returns whether anything in the element is visible.
    const visit = (element, isFaintAbove) => {
      const style = window.getComputedStyle(element);
      if (style.display === "none") return false;
      const hasBox = style.display !== "contents";
      if (hasBox && isUnseen(element, style)) {
        const isPlaced = style.position === "absolute" || style.position === "fixed";
        const hasRules = element.tagName === "STYLE" || element.querySelector("style");  // which must stay
        const leavesNoRoom = isPlaced || style.visibility !== "visible" || hasRules;
        changes.push(() => leavesNoRoom ? hide(element) : element.replaceChildren());
        return false;
      }
      const isFaint = isFaintAbove || (hasBox && (style.opacity < 0.05 || style.filter === "opacity(0)"));
      const isDim = isFaint || isTransparent(style.webkitTextFillColor);
      const isTiny = parseFloat(style.fontSize) < 2;
      let isVisible = style.visibility === "visible";
      for (const child of element.childNodes) {
        if (child.nodeType === 1) isVisible = visit(child, isFaint) || isVisible;
        else if ((isTiny || isDim) && element.tagName === "STYLE") changes.push(() => hide(element));
        else if (isTiny) changes.push(() => { child.data = ""; });
        else if (isDim)
          changes.push(() => { child.data = child.data.replace(/\\S+/g, ""); });
      }
      if (!isVisible) changes.push(() => hide(element));
      return isVisible;
    };
    visit(inside.documentElement, false);
    for (const change of changes) change();
    const story = inside.querySelector(selector);
    for (let one = story; one; one = one.parentElement)
      if (window.getComputedStyle(one).display === "none") return "";
    return story && inside.body && window.getComputedStyle(inside.body).display !== "none" ? story.innerText : "";
  };
  return pages.map(read);
}
"""


def generated_page(rng: random.Random) -> str:
    """A page of a few nested elements, some with styles of their own, and a style sheet or none."""
    rules = generated_rules(rng)
    sheet = f"<style>{rules}</style>" if rules else ""
    return f"<!doctype html><html><head>{UNPADDED}{sheet}</head><body>{_content(rng, 3)}</body></html>"


def page_of_boxes(rng: random.Random) -> str:
    """A page of words in boxes that are positioned, that float, and that boxes lay out."""

    def box(depth: int) -> str:
        tag, style = rng.choice(("span", "b", "i", "div")), rng.choice(BOXES)
        within = "".join(box(depth - 1) for _ in range(rng.randint(1, 3))) if depth and rng.random() < 0.6 else ""
        return f'{rng.choice(WORDS)}<{tag} style="{style}">{rng.choice(WORDS[:-1])}{within}</{tag}>{rng.choice(WORDS)}'

    return f"<!doctype html><html><body>{box(3)}</body></html>"


def generated_rules(rng: random.Random) -> str:
    """The rules of a style sheet, if any."""
    return "".join(
        rng.choice(WRAPPERS).format(f"{rng.choice(SELECTORS)} {{ {_declarations(rng)} }}")
        for _ in range(rng.choice((0, 0, 1, 2, 3)))
    )


def generated_story(rng: random.Random) -> str:
    """A story of a few nested elements, some with styles of their own, in which there may be a style sheet."""
    rules = generated_rules(rng) if rng.random() < 0.5 else ""
    return _content(rng, 3) + (f"<style>{rules}</style>" if rules else "")


def _content(rng: random.Random, depth: int) -> str:
    return "".join(
        _element(rng, depth) if depth and rng.random() < 0.5 else _leaf(rng) for _ in range(rng.randint(1, 4))
    )


def _leaf(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return f"<{rng.choice(('br', 'hr', 'wbr'))}{_attributes(rng)}>"
    return rng.choice(PIECES)


def _element(rng: random.Random, depth: int) -> str:
    tag = rng.choice(TAGS)
    return f"<{tag}{_attributes(rng)}>{_content(rng, depth - 1)}</{tag}>"


def _attributes(rng: random.Random) -> str:
    chance = rng.random()
    if chance < 0.35:
        return f' style="{_declarations(rng)}"'
    if chance < 0.4:
        return " hidden"
    if chance < 0.6:
        return f" class={rng.choice(('a', 'b', chr(34) + 'a b' + chr(34)))}"
    return rng.choice(("", "", " id=x", " title=t"))


def _declarations(rng: random.Random) -> str:
    return ";".join(rng.choices(DECLARATIONS, k=rng.choice((1, 1, 1, 2, 3))))


def shown_by(browser: "Browser", pages: Sequence[str], selector: str = "html") -> list[str]:
    """What Chromium shows of each page in the first element that a selector matches."""
    tab = browser.new_page(viewport={"width": 1280, "height": 720})
    try:
        return list(tab.evaluate(READ, [list(pages), selector]))
    finally:
        tab.close()
