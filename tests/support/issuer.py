"""An identity provider of a test's own: its keys, the tokens it signs, and a server that shows its public keys."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from phronesis_gateway.app import Tokens
from phronesis_gateway.auth.tokens import IssuerKeys
from phronesis_gateway.settings import JwtSettings

ISSUER = "https://id.example"
AUDIENCE = "phronesis"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """The RSA key with this name; the same for a whole run, as it takes a while to make one."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=bits)


def public(key: PrivateKey, **more: Any) -> dict[str, Any]:
    """The public half as a member of a set of keys."""
    match key:
        case rsa.RSAPrivateKey():
            stated = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case ec.EllipticCurvePrivateKey():
            stated = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case ed25519.Ed25519PrivateKey():
            stated = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {name: value for name, value in stated.items() if name != "key_ops"} | more


def text(data: bytes | str | dict[str, Any]) -> str:
    """Base64url without padding; of an object, its JSON."""
    if isinstance(data, dict):
        data = json.dumps(data)
    return base64.urlsafe_b64encode(data.encode() if isinstance(data, str) else data).rstrip(b"=").decode()


def bytes_of(part: str) -> bytes:
    """What a part of a token holds."""
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Issuer:
    """An identity provider with an RSA, an EC and an Ed25519 key."""

    def __init__(self) -> None:
        self.keys: dict[str, tuple[PrivateKey, str]] = {
            "rsa": (rsa_key("issuer"), "RS256"),
            "ec": (ec.generate_private_key(ec.SECP256R1()), "ES256"),
            "ed": (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
        }
        self.readings = 0
        """How often its public keys were read."""
        self.fault: Exception | None = None
        """Raised to whoever reads them."""

    @property
    def document(self) -> bytes:
        """Its public keys."""
        return json.dumps({"keys": [public(key, kid=kid, use="sig") for kid, (key, _) in self.keys.items()]}).encode()

    async def read(self) -> bytes:
        """The document, to a reader inside the process."""
        self.readings += 1
        if self.fault is not None:
            raise self.fault
        return self.document

    def settings(self, **more: Any) -> JwtSettings:
        """What a gateway that trusts it has set."""
        stated: dict[str, Any] = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": "https://id.example/keys"}
        return JwtSettings(**stated | more)

    def tokens(self, **more: Any) -> Tokens:
        """How a gateway trusts it."""
        settings = self.settings(**more)
        return Tokens(settings, IssuerKeys(self.read, settings.algorithms))

    @staticmethod
    def claims(**changes: Any) -> dict[str, Any]:
        """Good claims with `changes`; what is changed to `None` is left out."""
        now = int(time.time())
        good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "tenant": "acme", "role": "member", "iat": now, "exp": now + 300}
        return {name: value for name, value in (good | changes).items() if value is not None}

    def token(self, kid: str = "rsa", headers: dict[str, Any] | None = None, **changes: Any) -> str:
        """A token signed with one of its keys; `changes` are changes of its claims."""
        key, algorithm = self.keys[kid]
        return jwt.encode(self.claims(**changes), key, algorithm, {"kid": kid, **(headers or {})})


class KeyServer:
    """Answers HTTP with what it is told to: a status, a body, or nothing at all."""

    def __init__(self) -> None:
        self.status = 200
        self.body = b""
        self.more = ""
        """Further header lines."""
        self.stalls = False
        self.asked = 0
        self.url = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.asked += 1
            if self.stalls:
                await reader.read()
                return
            head = f"HTTP/1.1 {self.status} Said\r\nContent-Length: {len(self.body)}\r\nConnection: close\r\n{self.more}\r\n"
            writer.write(head.encode() + self.body)
            await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()


@asynccontextmanager
async def key_server() -> AsyncIterator[KeyServer]:
    """A server on a free port, for the length of a block."""
    answers = KeyServer()
    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    answers.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
    try:
        yield answers
    finally:
        server.close()
