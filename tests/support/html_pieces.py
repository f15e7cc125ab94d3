"""Pieces of HTML pages: tags, words, broken markup and noise characters."""

from tests.support.languages import TEXTS

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
