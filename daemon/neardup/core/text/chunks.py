"""The chunks of a story that are embedded: its first words, a hundred at a time."""

CHUNK_WORDS = 100
MOST_CHUNKS = 3
LEAST_WORDS = 20  # of a chunk after the first; a shorter one says too little
MOST_CHARACTERS = 4_000  # of a chunk: a text without spaces has words of any length
SCHEME = f"{MOST_CHUNKS}x{CHUNK_WORDS}"  # vectors of two schemes are not compared


def cut_chunks(text: str) -> list[str]:
    """The first chunks of a text, each of whole words, in their order; none if it has no words."""
    words = text.split(maxsplit=MOST_CHUNKS * CHUNK_WORDS)[: MOST_CHUNKS * CHUNK_WORDS]
    parts = [words[at : at + CHUNK_WORDS] for at in range(0, len(words), CHUNK_WORDS)]
    return [" ".join(part)[:MOST_CHARACTERS] for n, part in enumerate(parts) if n == 0 or len(part) >= LEAST_WORDS]
