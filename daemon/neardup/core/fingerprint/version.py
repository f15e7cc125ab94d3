"""Golden vectors: one text in each language whose fingerprints are pinned.

Their digest is the version of the fingerprints.  It is computed at start, so that a changed
normaliser, hash constant, numpy, xxhash or Unicode table changes the version, and the ledger
refuses to mix the two.
"""

from collections.abc import Iterator
from functools import cache

import xxhash

from neardup.core.fingerprint.compute import compiled_road, fingerprint, fingerprint_text
from neardup.core.text.normalize import tokens
from neardup.records import Language

# Each holds what its script makes difficult: nukta letters in both forms, joiners, chillu in both
# forms, digits of the script, marks, a danda, an apostrophe.
TEXTS = {
    Language.HINDI: "ज़मीन पर क़लम गिरी, हिन्दी की २५ किताबें पढ़ीं। क्\u200dष और क्षमा; बड़ी सड़क।",
    Language.MALAYALAM: "അവൻ പറഞ്ഞു: അവന്\u200d വന്നു, കാല്\u200d കാൽ; വാർത്തകള്\u200d ൧൨ എണ്ണം; മഴ പെയ്തു.",
    Language.BENGALI: "বাড়ির পড়া শেষ, ঢাকায় ১২টা বাজে। র\u200d্যাব; আষাঢ়ের মেঘ।",
    Language.MARATHI: "दुसऱ्या दिवशी सुऱ्या म्हणाला: 'चला, ३ वाजले!' वाऱ\u200d्यावर पान हलले.",
    Language.TAMIL: "கொக்கு கோவிலுக்குப் போனது; ௧௨ நாட்கள் கழித்து ஸ்ரீ வந்தான்.",
    Language.TELUGU: "రాజు కథ చెప్పాడు, క్\u200cష మరియు క్ష; ౧౨ రోజులు గడిచాయి.",
    Language.GUJARATI: "વાર્તા પૂરી થઈ, ફ઼ોન વાગ્યો; ૧૨ વાગ્યે ક્ષણ આવી.",
    Language.ENGLISH: "The Straße's café isn't far; Ms. O\u2019Neil walked 25\u00adkm in the RAIN.",
    Language.ODIA: "ବଡ଼ ଘରେ ପଢ଼ା ସରିଲା, ୧୨ଟା ବାଜିଛି। ମୟୂର ନାଚିଲା।",
    Language.PUNJABI: "ਸ਼ਹਿਰ ਦੀ ਜ਼ਮੀਨ, ਖ਼ਬਰ ਤੇ ਫ਼ਸਲ; ੧੨ ਵਜੇ ਪੱਗ ਬੰਨ੍ਹੀ।",
}
PINNED = "75ee331e9da1fe52"


@cache
def version() -> str:
    """The version of the fingerprints made here and now: 16 hexadecimal digits."""
    digest = xxhash.xxh3_64()
    for told in _stories():
        made = fingerprint(told)
        digest.update(b" ".join(told) + made.text_hash + made.simhash + (made.signature or b""))
    return digest.hexdigest()


def warm_up() -> bool:
    """Load the compiled road, which the first process ever to do so compiles; False where the system forbids it.

    Raises RuntimeError where it makes anything else of the golden texts than the plain one.
    """
    for told in _stories():
        if fingerprint_text(b" ".join(told).decode()) != fingerprint(told):
            raise RuntimeError("compiled fingerprints are not what they should be: empty the folder of numba's cache")
    return compiled_road() is not None


def _stories() -> Iterator[list[bytes]]:
    for text in TEXTS.values():
        words = tokens(text)
        yield words + words[::2] + words[::3]  # some words again, so that the weights count
        yield words + words[::-1] + words[::2] + words[::3]  # pairs enough for a signature
