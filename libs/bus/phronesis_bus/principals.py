"""Signed principals: an Ed25519 token says for whom a message acts, unless its key was revoked."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from pydantic import ValidationError

from phronesis_contracts import Principal, Unauthorized, Unavailable


class Revoked:
    """The keys, as far as this process knows them. Until they were read once, no outside system is believed."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._hearers: list[Callable[[], None]] = []
        self.known = False
        """Whether they were read."""

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, key: str) -> None:
        if key not in self._keys:
            self._keys.add(key)
            for hear in self._hearers:
                hear()

    def on_change(self, hear: Callable[[], None]) -> None:
        self._hearers.append(hear)

    def check(self, who: Principal) -> None:
        """Let an outside system's principal pass.

        Raises:
            Unauthorized: its key was revoked, or it has none that could be.
            Unavailable: it is not known yet which keys were.
        """
        if not self.known:
            raise Unavailable("which keys are revoked is not known yet", retry_after=1)
        if who.key is None or who.key in self._keys:
            raise Unauthorized("the key is revoked")


LIFETIME = 120.0
"""Seconds that a token of one service for another is good for."""
_CACHE = 4096
_LONGEST = 8 * 1024
"""Characters of a token; a longer one is refused unread."""
_LOGIN = "nats"
"""Audience of what an outside system logs in with; a principal has none, so neither can stand for the other."""


_FOR, _REQUEST = "for", "req"
"""Claims of the audience and of the request. Not `aud`: the version before refuses every token that has it."""


class Signer:
    """Signs principals as `issuer`. A token is for one service and one request, and is reused for half of its life."""

    def __init__(self, issuer: str, key: Ed25519PrivateKey) -> None:
        self._issuer = issuer
        self._key = key
        self._cache: OrderedDict[tuple[Principal, str | None, str | None], tuple[str, float]] = OrderedDict()

    @classmethod
    def load(cls, issuer: str, path: Path) -> Signer:
        """The signer whose private key stands in the PEM file `path`."""
        return cls(issuer, load_key(path))

    def token(self, who: Principal, audience: str | None = None, request: str | None = None) -> str:
        """A token with which the issuer acts for `who`.

        Args:
            audience: the only service that believes it; any does where none is named.
            request: the correlation id of the only request that it is believed with; any where none is named.
        """
        now, name = time.time(), (who, audience, request)
        cached = self._cache.get(name)
        if cached is not None and cached[1] - now > LIFETIME / 2:
            return cached[0]
        stated = {_FOR: audience, _REQUEST: request}
        token = self._signed(who, LIFETIME, {claim: value for claim, value in stated.items() if value is not None})
        self._cache[name] = (token, now + LIFETIME)
        if len(self._cache) > _CACHE:
            self._cache.popitem(last=False)
        return token

    def long_lived(self, who: Principal, seconds: float) -> str:
        """A token for `who` that is good for `seconds`."""
        return self._signed(who, seconds, {})

    def login(self, who: Principal, seconds: float) -> str:
        """What the outside system that acts for `who` logs in with at the broker, for `seconds`. It is no principal."""
        return self._signed(who, seconds, {"aud": _LOGIN})

    def _signed(self, who: Principal, seconds: float, more: dict[str, str]) -> str:
        now = time.time()
        claims = who.model_dump(mode="json", exclude_none=True) | {"iss": self._issuer, "iat": now, "exp": now + seconds}
        return jwt.encode(claims | more, self._key, algorithm="EdDSA")


@dataclass(frozen=True)
class _Verified:
    """What a token says, once its signature holds."""

    who: Principal
    expires: float
    audience: str | None
    request: str | None


class Verifier:
    """Believes tokens that a trusted issuer signed.

    Args:
        revoked: keys of outside systems that are believed no longer.
        audience: the service that verifies; it believes no token that names another one.
    """

    def __init__(
        self, trusted: dict[str, Ed25519PublicKey], revoked: Revoked | None = None, audience: str | None = None
    ) -> None:
        self._trusted = trusted
        self._revoked = revoked
        self._audience = audience
        self._cache: OrderedDict[str, _Verified] = OrderedDict()

    @classmethod
    def load(cls, folder: Path, revoked: Revoked | None = None, audience: str | None = None) -> Verifier:
        """The verifier that trusts every `<issuer>.pem` in `folder`, and no token of a key that is revoked."""
        trusted = {}
        for path in sorted(folder.glob("*.pem")):
            key = load_pem_public_key(path.read_bytes())
            if not isinstance(key, Ed25519PublicKey):
                raise TypeError(f"{path.name} holds no Ed25519 key")
            trusted[path.stem] = key
        return cls(trusted, revoked, audience)

    def principal(self, token: str | None, *, at: float | None = None, request: str | None = None) -> Principal:
        """The principal that `token` states.

        Args:
            request: the correlation id of the message that it came with.
            at: the time, in seconds since the epoch, at which it has to be valid; now by default. A job's token is
                held against the time at which the job was stored.

        Raises:
            Unauthorized: no token, an unknown issuer, a wrong signature, a token that has expired, that is for another
                service or came with another request than its own, or the token of an outside system whose key is revoked,
                whatever the time.
            Unavailable: an outside system's token, while it is not known which keys are revoked.
        """
        if not token:
            raise Unauthorized("no principal")
        if len(token) > _LONGEST:
            raise Unauthorized("the principal does not verify")
        now = time.time() if at is None else at
        cached = self._cache.get(token)
        if cached is None:
            cached = self._verify(token)
            self._cache[token] = cached
            if len(self._cache) > _CACHE:
                self._cache.popitem(last=False)
        if now >= cached.expires:
            raise Unauthorized("the principal has expired")
        # Those of outside systems, and of the version before, name neither.
        if cached.audience is not None and self._audience not in (None, cached.audience):
            raise Unauthorized("the principal is for another service")
        if cached.request not in (None, request):
            raise Unauthorized("the principal is for another request")
        self._not_revoked(cached.who)
        return cached.who

    def login(self, token: str) -> tuple[Principal, float]:
        """The outside system that logs in with `token`, and when it has to go, in seconds since the epoch.

        Raises:
            Unauthorized, Unavailable: as `principal` does, and for a token that is a principal.
        """
        if len(token) > _LONGEST:
            raise Unauthorized("the login does not verify")
        found = self._verify(token, _LOGIN)
        if time.time() >= found.expires or found.who.inbox is None:
            raise Unauthorized("the login has expired, or is no outside system's")
        self._not_revoked(found.who)
        return found.who, found.expires

    def _not_revoked(self, who: Principal) -> None:
        if who.inbox is not None and self._revoked is not None:
            self._revoked.check(who)

    def _verify(self, token: str, audience: str | None = None) -> _Verified:
        try:
            issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
            key = self._trusted.get(str(issuer))
            if key is None:
                raise Unauthorized("the principal's issuer is not trusted")
            # `iat` is not held against our clock: an issuer whose clock is a little ahead is no forger.
            options: Any = {"verify_exp": False, "verify_iat": False, "require": ["exp", "iss"]}
            claims = jwt.decode(token, key, algorithms=["EdDSA"], audience=audience, options=options)
            named = [None if claims.get(name) is None else str(claims[name]) for name in (_FOR, _REQUEST)]
            return _Verified(Principal.model_validate(claims), float(claims["exp"]), *named)
        except (jwt.PyJWTError, ValidationError, TypeError, ValueError, RecursionError) as error:
            raise Unauthorized("the principal does not verify") from error


def load_key(path: Path) -> Ed25519PrivateKey:
    """The private key that stands in the PEM file `path`. Raises `TypeError`: it is of another kind."""
    key = load_pem_private_key(path.read_bytes(), None)
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError(f"{path.name} holds no Ed25519 key")
    return key


def new_key(private: Path, public: Path) -> None:
    """Write a new Ed25519 pair as PEM files; the private one is readable by its owner alone."""
    key = Ed25519PrivateKey.generate()
    private.touch(mode=0o600)
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(public_key(key))


def public_key(key: Ed25519PrivateKey) -> bytes:
    """The public half, as PEM."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
