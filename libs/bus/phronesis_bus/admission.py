"""Letting outside systems in: what one comes in with, what it may do, and the answers to the broker (auth callout)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from phronesis_contracts import Principal, Role, ServiceError, Unauthorized
from phronesis_contracts.catalog import JOBS, OUTS, TOOLS

from . import envelope
from .client import BrokerClient, make_tls_options
from .connection import INBOX, Bus
from .connection import REVOCATION_SUBJECT as REVOKED_SUBJECT
from .outbox import publish
from .principals import load_key
from .settings import BusSettings

_ACCOUNT_PREFIX = 0
"""Prefix byte of the keys that accounts sign with; they begin with `A`."""
_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}


class Issuer:
    """Signs what the broker believes about those who come in.

    Args:
        key: the private key whose public half stands in the broker's configuration.
    """

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        raw = bytes([_ACCOUNT_PREFIX]) + key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        checked = raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")
        self.name = base64.b32encode(checked).decode().rstrip("=")
        """The public key, as the broker's configuration names the issuer."""

    @classmethod
    def load(cls, path: Path) -> Issuer:
        return cls(load_key(path))

    def token(self, claims: dict[str, Any]) -> str:
        signed = f"{_encode_part(_HEADER)}.{_encode_part({'iss': self.name} | claims)}"
        return f"{signed}.{_base64(self._key.sign(signed.encode()))}"


def read_claims(token: bytes) -> dict[str, Any]:
    """What a token of the broker's own says; its signature is not looked at. Raises `ValueError`: it is no token."""
    part = token.split(b".", 2)[1:2]
    if not part:
        raise ValueError("no token")
    found = json.loads(base64.urlsafe_b64decode(part[0] + b"=" * (-len(part[0]) % 4)))
    if not isinstance(found, dict):
        raise ValueError("no claims")
    return found


def _encode_part(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


LONGEST_DAYS = 366
"""Days that an outside system's key is good for at most; for longer than that nobody has to remember that it was revoked."""
OUTSIDE = f"{INBOX}.out"
"""Outside systems hear their answers below this, each below its own key's id."""


@dataclass(frozen=True)
class Credentials:
    """What an outside system comes in with."""

    user: str
    password: str
    """Its password there, which no service ever sees."""
    token: str
    inbox: str
    """Where it hears answers: the prefix of its reply subjects."""


def sign_credentials(bus: Bus, who: Principal, seconds: float) -> Credentials:
    """Sign for an outside system, for so many seconds.

    Args:
        who: for whom it acts; `key` names its key, by which it is revoked.
        seconds: how long they are good.

    Raises:
        RuntimeError: this service has no signing key.
    """
    if bus.signer is None or who.key is None:
        raise RuntimeError(f"{bus.name} cannot sign for an outside system")
    who = who.model_copy(update={"inbox": f"{OUTSIDE}.{who.key}"})
    return Credentials(
        user=who.key or "",
        password=bus.signer.login(who, seconds),
        token=bus.signer.long_lived(who, seconds),
        inbox=who.inbox or "",
    )


async def revoke(bus: Bus, key: str) -> None:
    """Let every process refuse the tokens of an outside system's key. A repeat changes nothing.

    Raises:
        Unavailable: the broker is away, or has no stream for it.
    """
    await publish(bus, f"{REVOKED_SUBJECT}.{key}", b"", envelope.headers(bus.name))


def publish_subjects(who: Principal) -> list[str]:
    """Subjects that an outside system may publish to: its user's turns, and the tools that its role and permissions open.

    A reader has no turns: what an agent does in one is more than to read.
    """
    turns = () if who.role is Role.READER else JOBS
    return [job.from_outside(who.tenant, who.user) for job in turns] + [
        tool.rpc.on(who.tenant) for tool in TOOLS.values() if tool.open_to(who)
    ]


def subscribe_subjects(who: Principal) -> list[str]:
    """Subjects that an outside system may subscribe to: the progress of its user's turns, and its own answers."""
    return [*(out.on(who.tenant, who.user, ">") for out in OUTS), f"{who.inbox}.>"]


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
    await bus.hear(ASKED, admission.asked, queue=bus.name)
    bus.revoked.on_change(admission.look)
    task = asyncio.create_task(admission.keep(), name="admission")

    async def stop() -> None:
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
        try:
            asked = read_claims(msg.data)["nats"]
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
            "pub": {"allow": publish_subjects(who)},
            "sub": {"allow": subscribe_subjects(who)},
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
        **make_tls_options(settings),
    )
    try:
        yield client
    finally:
        await client.close()
