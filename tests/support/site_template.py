"""The page of a site around a story: icons, buttons, a menu, comments, and a style sheet that hides some of them."""

from neardup.core.text.extraction import Extraction

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
