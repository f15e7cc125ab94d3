"""Optional checks of the server or the file behind an index."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class ServerHealth(Protocol):
    """An index that can check its server or file.  Each method raises Transient as `Index`."""

    async def check_writable(self) -> None:
        """Write without changing the index; raises where an insert would be refused."""
        ...

    async def problem(self) -> str | None:
        """What is wrong with the server's configuration or with the data, in one line; None if nothing is."""
        ...
