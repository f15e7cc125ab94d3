"""From a page to its story's words: decoding, markup, normalisation, scripts and what is unusual about a text."""
