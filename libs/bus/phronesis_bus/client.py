"""What reaches the broker: nats-py's client, mended, FastStream on its connection, and TLS: whom to believe, what to show."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from faststream import AckPolicy, BaseMiddleware
from faststream.message import StreamMessage
from faststream.nats import NatsBroker
from nats.aio.client import Client, Srv
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from .settings import BusSettings


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


class UntrustedBroker(Exception):
    """The broker did not prove who it is, did not believe this process's certificate, or offers no TLS where it has to."""


def make_tls_options(settings: BusSettings) -> dict[str, Any]:
    """What the client is told of TLS; nothing at an address without it.

    Raises:
        UntrustedBroker: one of the files is missing, or is no certificate or key.
    """
    if not settings.tls:
        return {}
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if settings.cert_file is not None:
            context.load_cert_chain(settings.cert_file, settings.key_file)
    except OSError as error:  # the library's own errors are among them
        raise UntrustedBroker("the files of BUS_CA_FILE, BUS_CERT_FILE and BUS_KEY_FILE cannot be used") from error
    return {"tls": context}


def tls_failure(error: Exception) -> UntrustedBroker | None:
    """What a failed connection means where TLS is the reason; `None` for everything that may pass by itself."""
    if isinstance(error, NoTls):
        return UntrustedBroker("the broker offers no TLS, and the address asks for it")
    if isinstance(error, ssl.SSLCertVerificationError):
        return UntrustedBroker("the broker's certificate is not believed: see BUS_CA_FILE, and the names in the certificate")
    if isinstance(error, ssl.SSLError):
        return UntrustedBroker("the broker ended the TLS handshake: it may want a certificate, see BUS_CERT_FILE")
    return None


log = logging.getLogger(__name__)


class _Failures(BaseMiddleware[Any, Msg | None]):
    """Logs what no other middleware answers for. FastStream's own log lines hold the texts of exceptions; ours never do."""

    async def after_processed(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> bool:
        match exc_val:
            case None:
                return False
            case NatsError():
                log.warning("an answer to %s could not be sent", self.msg.subject if self.msg else "a message")
            case Exception():
                log.error("a message could not be handled", exc_info=exc_val)
        return isinstance(exc_val, Exception)


class Application(NatsBroker):
    """FastStream's broker on a connection that it neither makes nor ends: TLS, reconnecting and closing stay the bus's.

    Args:
        client: the bus's connection.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(
            apply_types=False,  # the contracts validate; a second validation would cost half a hop
            logger=None,
            ack_policy=AckPolicy.MANUAL,  # nothing here is stored, so nothing is acknowledged
            decoder=_undecoded,
            middlewares=(_Failures,),
            graceful_timeout=None,
        )
        self._client = client

    async def _connect(self) -> Client:
        self.config.connect(self._client)
        return self._client

    async def hear(self, subject: str, handler: Callable[[Msg], Awaitable[None]], queue: str = "") -> Any:
        """Subscribe to messages that want no answer, and hand each to `handler`, one after the other.

        Returns:
            The subscription, for `Bus.drain`.
        """

        async def received(message: StreamMessage[Msg]) -> None:
            await handler(message.raw_message)

        endpoint = self.subscriber(subject, queue, no_reply=True)
        endpoint(received)
        await endpoint.start()
        return endpoint.subscription


async def _undecoded(message: StreamMessage[Msg]) -> StreamMessage[Msg]:
    return message
