"""Signed principals: an Ed25519 token says for whom a message acts."""

from __future__ import annotations

import time
from collections import OrderedDict
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

from phronesis.contracts import Principal, Unauthorized

LIFETIME = 120.0
"""Seconds that a token of one service for another is good for."""
_CACHE = 4096


class Signer:
    """Signs principals as `issuer`. Tokens are reused for half of their life.

    Args:
        issuer: the service's name.
        key: its private key.
    """

    def __init__(self, issuer: str, key: Ed25519PrivateKey) -> None:
        self._issuer = issuer
        self._key = key
        self._cache: OrderedDict[Principal, tuple[str, float]] = OrderedDict()

    @classmethod
    def load(cls, issuer: str, path: Path) -> Signer:
        """The signer whose private key stands in the PEM file `path`."""
        key = load_pem_private_key(path.read_bytes(), None)
        if not isinstance(key, Ed25519PrivateKey):
            raise TypeError(f"{path.name} holds no Ed25519 key")
        return cls(issuer, key)

    def token(self, who: Principal) -> str:
        """A short-lived token for `who`."""
        now = time.time()
        cached = self._cache.get(who)
        if cached is not None and cached[1] - now > LIFETIME / 2:
            return cached[0]
        token = self.long_lived(who, LIFETIME)
        self._cache[who] = (token, now + LIFETIME)
        if len(self._cache) > _CACHE:
            self._cache.popitem(last=False)
        return token

    def long_lived(self, who: Principal, seconds: float) -> str:
        """A token for `who` that is good for `seconds`."""
        now = time.time()
        claims = who.model_dump(mode="json", exclude_none=True) | {"iss": self._issuer, "iat": now, "exp": now + seconds}
        return jwt.encode(claims, self._key, algorithm="EdDSA")


class Verifier:
    """Believes tokens that a trusted issuer signed.

    Args:
        trusted: public key of each issuer by name.
    """

    def __init__(self, trusted: dict[str, Ed25519PublicKey]) -> None:
        self._trusted = trusted
        self._cache: OrderedDict[str, tuple[Principal, float]] = OrderedDict()

    @classmethod
    def load(cls, folder: Path) -> Verifier:
        """The verifier that trusts every `<issuer>.pem` in `folder`."""
        trusted = {}
        for path in sorted(folder.glob("*.pem")):
            key = load_pem_public_key(path.read_bytes())
            if not isinstance(key, Ed25519PublicKey):
                raise TypeError(f"{path.name} holds no Ed25519 key")
            trusted[path.stem] = key
        return cls(trusted)

    def principal(self, token: str | None, *, at: float | None = None) -> Principal:
        """The principal that `token` states.

        Args:
            token: the signed token.
            at: the time, in seconds since the epoch, at which it has to be valid; now by default. A job's token is
                held against the time at which the job was stored.

        Raises:
            Unauthorized: no token, an unknown issuer, a wrong signature, or a token that has expired.
        """
        if not token:
            raise Unauthorized("no principal")
        now = time.time() if at is None else at
        cached = self._cache.get(token)
        if cached is None:
            cached = self._verify(token)
            self._cache[token] = cached
            if len(self._cache) > _CACHE:
                self._cache.popitem(last=False)
        who, expires = cached
        if now >= expires:
            raise Unauthorized("the principal has expired")
        return who

    def _verify(self, token: str) -> tuple[Principal, float]:
        try:
            issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
            key = self._trusted.get(str(issuer))
            if key is None:
                raise Unauthorized("the principal's issuer is not trusted")
            # `iat` is not held against our clock: an issuer whose clock is a little ahead is no forger.
            options: Any = {"verify_exp": False, "verify_iat": False, "require": ["exp", "iss"]}
            claims = jwt.decode(token, key, algorithms=["EdDSA"], options=options)
            return Principal.model_validate(claims), float(claims["exp"])
        except (jwt.PyJWTError, ValidationError, TypeError, ValueError) as error:
            raise Unauthorized("the principal does not verify") from error


def new_key(private: Path, public: Path) -> None:
    """Write a new Ed25519 pair as PEM files; the private one is readable by its owner alone."""
    key = Ed25519PrivateKey.generate()
    private.touch(mode=0o600)
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
