"""Letting outside systems in: the broker asks about every user that its configuration does not name (auth callout).

The program that declares streams answers. It needs no store for it: what an outside system shows was signed by the gateway,
and which keys are revoked is read from a stream. A system whose key is revoked is put out.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from phronesis_contracts import Principal, ServiceError, Unauthorized

from .client import BrokerClient
from .connection import INBOX, Bus
from .nkeys import Issuer, claims
from .outsiders import publishes, subscribes
from .settings import BusSettings
from .tls import options

log = logging.getLogger(__name__)

ASKED = "$SYS.REQ.USER.AUTH"
ANSWERED = "$SYS._INBOX.>"
"""Where the broker hears the answers."""
SYSTEM = "system"
"""User of the broker's own account, which may see connections and end them, and nothing else."""
SYSTEM_SUBJECTS = ("$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.SERVER.*.KICK")
_ACCOUNT = "$G"
"""Where all users are that the configuration puts nowhere else."""
_PAGE = 1024
_PAGES = 64
_SERVERS = 0.5
"""Seconds in which every server of a cluster answers."""
_LATER = 5.0
"""Seconds after which a second look finds whoever was just on the way in."""
_EVERY = 60.0


async def admit(bus: Bus) -> None:
    """Answer the broker, and put out whoever is revoked, until the bus stops.

    Args:
        bus: the bus of the declaring program, with the key whose public half the broker's configuration names.
    """
    if bus.settings.signing_key_file is None:
        raise RuntimeError(f"{bus.name} has no key to let outside systems in with")
    admission = _Admission(bus, Issuer.load(bus.settings.signing_key_file))
    subscription = await bus.nats.subscribe(ASKED, queue=bus.name, cb=admission.asked)
    await bus.settled()
    bus.revoked.on_change(admission.look)
    task = asyncio.create_task(admission.keep(), name="admission")

    async def stop() -> None:
        await bus.drain(subscription)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    bus.on_stop(stop)


class _Admission:
    def __init__(self, bus: Bus, issuer: Issuer) -> None:
        self._bus = bus
        self._issuer = issuer
        self._changed = asyncio.Event()

    def look(self) -> None:
        """Somebody may have to go."""
        self._changed.set()

    async def asked(self, msg: Msg) -> None:
        """Answer one question of the broker."""
        try:
            asked = claims(msg.data)["nats"]
            server, nkey = str(asked["server_id"]["id"]), str(asked["user_nkey"])
            given = asked["connect_opts"]
        except (ValueError, KeyError, TypeError):
            log.error("the broker's question about a user does not parse")
            return
        answer: dict[str, Any] = {"type": "authorization_response", "version": 2}
        try:
            answer["jwt"] = self._user(nkey, *self._login(given))
        except (ServiceError, KeyError) as error:
            log.warning("a user was not let in: %s", error.code if isinstance(error, ServiceError) else "no password")
            answer["error"] = "not let in"
        token = self._issuer.token({"sub": nkey, "aud": server, "iat": int(time.time()), "nats": answer})
        try:
            await self._bus.nats.publish(msg.reply, token.encode())
        except NatsError:
            log.warning("the broker went away while it asked about a user")

    def _login(self, given: dict[str, Any]) -> tuple[Principal, float]:
        who, expires = self._bus.verifier.login(str(given["pass"]))
        if not hmac.compare_digest(str(given["user"]).encode(), str(who.key).encode()):
            raise Unauthorized("the password is another user's")
        return who, expires

    def _user(self, nkey: str, who: Principal, expires: float) -> str:
        rights = {
            "type": "user",
            "version": 2,
            "pub": {"allow": publishes(who)},
            "sub": {"allow": subscribes(who)},
            "subs": -1,  # the broker heeds none of these limits for a user that it asked about; its own hold for everybody
            "payload": -1,
            "data": -1,
        }
        times = {"iat": int(time.time()), "exp": int(expires)}
        return self._issuer.token({"sub": nkey, "aud": _ACCOUNT, "name": who.key, "nats": rights} | times)

    async def keep(self) -> None:
        """Put out whoever is revoked, at once when somebody is and every while."""
        wait = 0.0
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            wait = _LATER if self._changed.is_set() else _EVERY
            self._changed.clear()
            try:
                await self._put_out()
            except (NatsError, TimeoutError, OSError, ValueError, KeyError) as error:
                log.warning("revoked systems could not be put out: %s", type(error).__name__)
                wait = _LATER

    async def _put_out(self) -> None:
        if not self._bus.revoked or not self._bus.connected:
            return
        async with _system(self._bus.settings) as client:
            for page in range(_PAGES):
                found = await _connections(client, page * _PAGE)
                for server, connection in found:
                    if connection.get("authorized_user") in self._bus.revoked:
                        wanted = json.dumps({"cid": connection["cid"]}).encode()
                        await client.request(f"$SYS.REQ.SERVER.{server}.KICK", wanted, timeout=3)
                        log.info("put out a system whose key is revoked")
                if len(found) < _PAGE:
                    return


async def _connections(client: Client, offset: int) -> list[tuple[str, dict[str, Any]]]:
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    wanted = {"auth": True, "acc": _ACCOUNT, "limit": _PAGE, "offset": offset}
    await client.publish(SYSTEM_SUBJECTS[0], json.dumps(wanted).encode(), reply=inbox)
    found = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SERVERS):
            async for msg in answers.messages:
                page = json.loads(msg.data)
                found += [(page["server"]["id"], each) for each in page["data"].get("connections", ())]
    await answers.unsubscribe()
    return found


@asynccontextmanager
async def _system(settings: BusSettings) -> AsyncIterator[Client]:
    client = BrokerClient()
    password = settings.password()
    await client.connect(
        settings.url.split(","),
        user=SYSTEM,
        password=password.get_secret_value() if password else None,
        name="phronesis-admission",
        inbox_prefix=f"{INBOX}.{SYSTEM}",
        allow_reconnect=False,
        connect_timeout=3,
        **options(settings),
    )
    try:
        yield client
    finally:
        await client.close()
