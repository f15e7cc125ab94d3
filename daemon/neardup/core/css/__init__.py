"""The style engine: which texts of a page a browser shows, and in which order.

`sheets` and `declarations` parse, `values` computes, `cascade` finds what holds for an element, `computed_style` what
it inherits and whether it is seen, `order` where its children stand, and `rendering` writes the text.  `core.text` asks
`page_styles` first whether a style sheet acts on a story at all, since most stories need no rendering.
"""
