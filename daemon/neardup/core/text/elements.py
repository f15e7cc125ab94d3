"""The elements and the values of `display` that a browser shows in a way of their own."""

BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup",
    "option", "p", "plaintext", "pre", "search", "section", "summary", "table", "td", "th", "tr", "ul", "xmp",
))  # fmt: skip
NOT_SHOWN = frozenset((
    "area", "base", "datalist", "head", "link", "meta", "noembed", "noframes", "noscript", "param", "rp", "rt",
    "script", "style", "template", "title", "defs", "desc", "metadata", "symbol", "clippath", "annotation",
    "annotation-xml",
))  # fmt: skip
REPLACED = frozenset((
    "audio", "canvas", "iframe", "img", "noscript", "rp", "rt", "select", "template", "video",
))  # fmt: skip  # whatever their style
NOT_TEXT = NOT_SHOWN | REPLACED
CONTROLS = frozenset((
    "button", "textarea",
))  # fmt: skip
BREAKING = frozenset((
    "block", "flex", "grid", "table", "table-row", "table-cell", "table-caption", "list-item", "flow-root",
    "-webkit-box",
))  # fmt: skip
