"""The library's client of the broker, mended."""

from __future__ import annotations

import asyncio

from nats.aio.client import Client, Srv
from nats.errors import Error as NatsError


class NoTls(NatsError):
    """The broker at a `tls://` address would go on without TLS."""


class BrokerClient(Client):
    """The library's client, with what it gets wrong mended: three things, each said where it is done."""

    _ended = False

    async def close(self) -> None:
        """End the connection; nothing knocks at the broker afterwards."""
        self._ended = True
        await super().close()

    async def _connect_to_server(self, s: Srv) -> None:
        # The library can lose the cancellation that ends its reconnecting, and would then knock for ever.
        if self._ended:
            raise asyncio.CancelledError
        await super()._connect_to_server(s)

    async def _process_connect_init(self) -> None:
        # The library would wait for the end of a socket whose TLS never began, and that end is told to nobody.
        try:
            await super()._process_connect_init()
        except BaseException:
            transport, self._transport = self._transport, None
            if transport is not None:
                transport.close()
            raise

    def _connect_command(self) -> bytes:
        # The library follows what the server states in the clear, whatever the address says. This is the last moment before
        # the password leaves.
        server = self._current_server
        if server is not None and server.uri.scheme == "tls" and not self._server_info.get("tls_required"):
            raise NoTls("the broker offers no TLS")
        command: bytes = super()._connect_command()
        return command
