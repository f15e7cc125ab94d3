"""An HTTP session of aiobotocore that follows no redirects.

aiohttp would follow them to any host, with the session token and the signed headers.
"""

from functools import partial
from types import SimpleNamespace
from typing import Any

from aiobotocore.httpsession import AIOHTTPSession  # type: ignore[import-untyped]


class NoRedirects(AIOHTTPSession):  # type: ignore[misc]
    """A redirect is a response like any other: botocore makes an error of it."""

    async def _get_session(self, proxy_url: str | None) -> Any:
        session = await super()._get_session(proxy_url)
        return SimpleNamespace(request=partial(session.request, allow_redirects=False))
