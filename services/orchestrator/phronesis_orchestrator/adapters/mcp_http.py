"""HTTP to one outside server: at the IP addresses that were checked, to its own origin alone, and no more than a limit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import httpx2

MAX_RESPONSE = 2 * 1024 * 1024
"""Bytes of one response."""


class Pinned(httpx2.AsyncBaseTransport):
    """Connects to the addresses that were checked, whatever a name leads to by now.

    Args:
        url: the server's endpoint; requests to another origin are refused, so that no redirect leads elsewhere.
        addresses: IP addresses that may be connected to.
        headers: sent with each request, and with none to anybody else.
    """

    def __init__(self, url: str, addresses: tuple[str, ...], headers: Mapping[str, str]) -> None:
        self._url = httpx2.URL(url)
        self._addresses = addresses
        self._headers = dict(headers)
        self._transport = httpx2.AsyncHTTPTransport(trust_env=False, retries=0)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The server's response, from the first address that can be connected to."""
        if _origin(request.url) != _origin(self._url):
            raise httpx2.UnsupportedProtocol("an outside server is asked at its own origin alone", request=request)
        request.headers.update({**self._headers, "Accept-Encoding": "identity"})
        request.extensions = {**request.extensions, "sni_hostname": self._url.raw_host.decode("ascii").removesuffix(".")}
        failed: httpx2.ConnectError | None = None
        for address in self._addresses:
            pinned = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions=request.extensions,
            )
            try:
                return _bounded(await self._transport.handle_async_request(pinned), request)
            except httpx2.ConnectError as error:
                failed = error
        raise failed or httpx2.ConnectError("the address leads nowhere", request=request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A stream that ends with an error where it gives too much."""

    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_RESPONSE:
                raise httpx2.ReadError(f"a response is over {MAX_RESPONSE} bytes", request=self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _bounded(response: httpx2.Response, request: httpx2.Request) -> httpx2.Response:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.ReadError("a response is packed though it was asked not to be", request=request)
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=_Bounded(response.stream, request),
        extensions=response.extensions,
    )


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return (url.scheme, url.host, url.port)
