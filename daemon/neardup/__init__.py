"""neardup: near-duplicate and plagiarism detection for stories in many languages.

    source ──▶ jobs ──▶ workers ──▶ outcomes ──▶ writer ──▶ candidates ──▶ verifier ──▶ flags
   (athena,   queue   (fetch,       queue      (look up,    (ledger)     (exact         (ledger,
   manifest)           extract,                 commit,                   arithmetic)    export)
                       fingerprint)             index)

The two queues are bounded: they are the only coupling between the stages and the only backpressure.  The ledger
(SQLite) is the truth; the index (SQLite or Redis) is derived from it.

Two texts in hand need none of it:

    >>> import neardup
    >>> print(neardup.compare("...", "...", language="hi"))
    >>> neardup.fingerprint("...", language="hi")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.query.texts import Comparison, compare, fingerprint

__version__ = "0.1.0"
__all__ = ["Comparison", "__version__", "compare", "fingerprint"]


def __getattr__(name: str) -> Any:
    """The public functions, imported when they are first used: a command starts without them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("neardup.query.texts"), name)
