"""neardup: near-duplicate and plagiarism detection for stories in many languages.

    source ──▶ jobs ──▶ workers ──▶ outcomes ──▶ writer ──▶ candidates ──▶ verifier ──▶ flags
   (athena,   queue   (fetch,       queue      (look up,    (ledger)     (exact         (ledger,
   manifest)           extract,                 commit,                   arithmetic)    export)
                       fingerprint)             index)

The two queues are bounded: they are the only coupling between the stages and the only backpressure.  The ledger
(SQLite) is the truth; the index (SQLite or Redis) is derived from it.

Texts in hand need none of it: see deploy/docs/library.md.

    >>> import neardup
    >>> print(neardup.compare("...", "..."))
    >>> neardup.find_copies(["...", "...", "..."])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neardup.http.signatures import InvalidSignature, verify_webhook
    from neardup.query.texts import Comparison, Copies, Copy, Index, compare, find_copies, fingerprint
    from neardup.serve.client import AsyncClient, Client, InvalidArgument, ServiceError

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "Client",
    "Comparison",
    "Copies",
    "Copy",
    "Index",
    "InvalidArgument",
    "InvalidSignature",
    "ServiceError",
    "__version__",
    "compare",
    "find_copies",
    "fingerprint",
    "verify_webhook",
]

# Public name -> its module
MODULES = {
    "AsyncClient": "neardup.serve.client",
    "Client": "neardup.serve.client",
    "Comparison": "neardup.query.texts",
    "Copies": "neardup.query.texts",
    "Copy": "neardup.query.texts",
    "Index": "neardup.query.texts",
    "InvalidArgument": "neardup.serve.client",
    "InvalidSignature": "neardup.http.signatures",
    "ServiceError": "neardup.serve.client",
    "compare": "neardup.query.texts",
    "find_copies": "neardup.query.texts",
    "fingerprint": "neardup.query.texts",
    "verify_webhook": "neardup.http.signatures",
}


def __getattr__(name: str) -> Any:
    """The public names, imported when they are first used: a command starts without them."""
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(MODULES[name]), name)
