"""Tokens of an identity provider (JWT), and its public keys (JWKS).

The header chooses a key of the configured set by `kid`, and nothing else: a key or an address that it brings along is not
looked at. The claims are read from the very bytes that the signature covers, strictly.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import httpx
from jwt import PyJWK, PyJWTError
from jwt.api_jws import PyJWS
from pydantic import ValidationError

from phronesis_contracts import SYSTEM_TENANT, BadRequest, Unauthorized, Unavailable

from ..http.requests import KeyGiven, parse_json
from ..settings import JwtSettings
from .keys import SCOPES, Key

MAX_TOKEN = 8 * 1024
"""Characters of a token; a longer one is refused unread."""
TOKEN_PREFIX = "jwt"
"""Stands where a key shows its secret's first characters."""
_PARTS = re.compile(r"([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TYPES = ("jwt", "at+jwt")
_LONGEST_KID = 256
_CALLERS = UUID("5f0d2a3c-6b1e-4c57-9a44-d6f1c0a7be21")
"""Namespace of the ids of callers who come with tokens."""
_JWS = PyJWS(options={"enforce_minimum_key_length": True})
_INVALID = "the token is not valid"

Claims = dict[str, Any]


class TokenVerifier:
    """Reads tokens.

    Args:
        settings: whose tokens, and which claims say what; the issuer is set.
        keys: the issuer's public keys.
    """

    def __init__(self, settings: JwtSettings, keys: IssuerKeys, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._keys = keys
        self._clock = clock

    async def caller(self, token: str) -> Key:
        """Whom a token speaks for, as a key without a secret. Its id is the same for every token of one caller.

        Raises:
            Unauthorized: the token is not valid; only of one that has expired is it said why.
            Unavailable: the issuer's keys cannot be had.
        """
        claims = self._claims(await self._verified(token))
        now = self._clock()
        self._in_time(claims, now)
        return self._key(claims, now)

    async def _verified(self, token: str) -> bytes:
        """The payload, once its signature holds."""
        kid, algorithm = _parse_header(token)
        if algorithm not in self._settings.algorithms:
            raise Unauthorized(_INVALID)
        key = await self._keys.by_id(kid)
        # A key is good for one algorithm, whatever a header says that it was used with.
        if key is None or key.algorithm_name != algorithm:
            raise Unauthorized(_INVALID)
        try:
            payload: bytes = _JWS.decode(token, key, algorithms=[algorithm])
        except (PyJWTError, ValueError) as error:
            raise Unauthorized(_INVALID) from error
        return payload

    def _claims(self, payload: bytes) -> Claims:
        claims = _json_object(payload)
        # Exact: a token that was made for others too could be sent here by them.
        if claims.get("iss") != self._settings.issuer or claims.get("aud") != self._settings.audience:
            raise Unauthorized(_INVALID)
        return claims

    def _in_time(self, claims: Claims, now: float) -> None:
        leeway, longest = self._settings.leeway, self._settings.max_lifetime
        issued, expires, begins = (_seconds(claims, name) for name in ("iat", "exp", "nbf"))
        if issued is None or expires is None or expires - issued > longest:
            raise Unauthorized(_INVALID)
        if now >= expires + leeway:
            raise Unauthorized("the token has expired")
        if max(issued, begins or issued) > now + leeway:
            raise Unauthorized(_INVALID)

    def _key(self, claims: Claims, now: float) -> Key:
        names = self._settings
        stated = {
            "tenant": claims.get(names.tenant_claim),
            "user": claims.get(names.user_claim),
            "role": claims.get(names.role_claim),
            "agents": _agents(claims.get(names.agents_claim)),
            "department": claims.get(names.department_claim),
            "ministry": claims.get(names.ministry_claim),
        }
        try:
            given = KeyGiven.model_validate({name: value for name, value in stated.items() if value is not None})
        except ValidationError as error:
            raise Unauthorized(_INVALID) from error
        if given.deprecation is not None:
            log.warning("a token of the issuer: %s", given.deprecation)
        if given.tenant is None or given.tenant == SYSTEM_TENANT:
            raise Unauthorized(_INVALID)
        claimed = _scopes(claims.get(names.scope_claim))
        return Key(
            id=str(uuid5(_CALLERS, json.dumps([claims["iss"], given.tenant, given.user]))),
            tenant=given.tenant,
            user=given.user,
            role=given.role,
            agents=given.agents,
            department=given.department,
            ministry=given.ministry,
            # What narrows a caller is always heard; what lifts one, only where the operator lets it.
            scopes=tuple(scope for scope in (*names.scopes, *SCOPES) if scope in claimed),
            prefix=TOKEN_PREFIX,
            created_at=datetime.fromtimestamp(now, UTC),
        )


def _parse_header(token: str) -> tuple[str, str]:
    parts = _PARTS.fullmatch(token) if len(token) <= MAX_TOKEN else None
    if parts is None:
        raise Unauthorized(_INVALID)
    try:
        header = _json_object(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError as error:
        raise Unauthorized(_INVALID) from error
    kid, algorithm, kind = header.get("kid"), header.get("alg"), header.get("typ", _TYPES[0])
    # No extension is understood here, so none may be critical.
    if not isinstance(kid, str) or len(kid) > _LONGEST_KID or not isinstance(algorithm, str) or "crit" in header:
        raise Unauthorized(_INVALID)
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise Unauthorized(_INVALID)
    return kid, algorithm


def _json_object(data: bytes) -> Claims:
    try:
        value = parse_json(data)
    except BadRequest as error:
        raise Unauthorized(_INVALID) from error
    if not isinstance(value, dict):
        raise Unauthorized(_INVALID)
    return value


def _seconds(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unauthorized(_INVALID)
    return float(value)


def _agents(claim: Any) -> list[str] | None:
    return None if claim is None else _scopes(claim)


def _scopes(claim: Any) -> list[str]:
    match claim:
        case None:
            return []
        case str():
            return claim.split(" ")
        case list() if all(isinstance(scope, str) for scope in claim):
            return claim
    raise Unauthorized(_INVALID)


log = logging.getLogger(__name__)

FRESH = 300.0
"""Seconds after which the keys are read again, beside the requests: a key that the issuer takes back is believed as long."""
STALE = 3_600.0
"""Seconds that they are believed while they cannot be read again; then nobody with a token comes in."""
GAP = 10.0
"""Seconds between two readings, whatever is asked for: tokens with made-up key ids must not become requests to the issuer."""
SECONDS = 5.0
"""Seconds that a reading may take."""
MAX_BYTES = 256 * 1024
"""Bytes that a set of keys may have."""
_MOST_KEYS = 64
"""Keys of a set that are looked at."""
_PUBLIC = ("kty", "kid", "use", "alg", "n", "e", "crv", "x", "y")
"""Members that are read; a private part that an issuer shows by mistake is not."""

Read = Callable[[], Awaitable[bytes]]


class IssuerKeys:
    """Keys by their id. One reading is under way at most, and all who wait for it share it.

    Args:
        read: gets the document; raises `Unavailable` where it cannot be had.
        algorithms: those that a key may be for.
    """

    def __init__(self, read: Read, algorithms: tuple[str, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._algorithms = algorithms
        self._clock = clock
        self._keys: dict[str, PyJWK] = {}
        self._read_at = self._tried_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, settings: JwtSettings) -> IssuerKeys:
        """The keys that `settings` names, by address or by file."""
        url, path = settings.jwks_url, settings.jwks_file
        if url is not None:
            return cls(lambda: fetch_document(url), settings.algorithms)
        assert path is not None
        return cls(lambda: asyncio.to_thread(_read_file, path), settings.algorithms)

    async def by_id(self, kid: str) -> PyJWK | None:
        """The key with this id; `None` where the issuer has none.

        Raises:
            Unavailable: the keys could not be read, so that nobody can say.
        """
        key, age = self._keys.get(kid), self._clock() - self._read_at
        if key is None or age >= STALE:
            await self._again()
            key, age = self._keys.get(kid), self._clock() - self._read_at
        elif age >= FRESH:
            self._begin()
        if age >= STALE or (key is None and self._read_at < self._tried_at):
            raise Unavailable("the issuer's keys cannot be had", retry_after=GAP)
        return key

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    def _begin(self) -> asyncio.Task[None] | None:
        """The reading that is under way, begun now unless there was one a moment ago."""
        now = self._clock()
        if (self._reading is None or self._reading.done()) and now - self._tried_at >= GAP:
            self._tried_at = now
            self._reading = asyncio.create_task(self._refresh(now), name="jwks")
        return self._reading

    async def _again(self) -> None:
        reading = self._begin()
        if reading is not None and not reading.done():
            # Who waits may leave; the others still wait for it.
            await asyncio.wait({reading})

    async def _refresh(self, now: float) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                self._keys = parse_keys(await self._read(), self._algorithms)
            self._read_at = now
        except TimeoutError:
            log.warning("the issuer's keys did not come in time")
        except Unavailable as error:
            log.warning("the issuer's keys cannot be read: %s", error.detail)
        except Exception:
            log.exception("the issuer's keys could not be read")


async def fetch_document(url: str) -> bytes:
    """The document at `url`, which is not followed elsewhere. Raises `Unavailable`: it cannot be had, or is too large."""
    data = bytearray()
    try:
        async with (
            httpx.AsyncClient(timeout=SECONDS, trust_env=False, headers={"Accept-Encoding": "identity"}) as client,
            client.stream("GET", url) as answer,
        ):
            if answer.status_code != 200:
                raise Unavailable(f"status {answer.status_code}")
            async for part in answer.aiter_raw():
                data += part
                if len(data) > MAX_BYTES:
                    raise Unavailable("too large")
    except httpx.HTTPError as error:
        raise Unavailable(type(error).__name__) from error
    return bytes(data)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unavailable(type(error).__name__) from error
    if len(data) > MAX_BYTES:
        raise Unavailable("too large")
    return data


def parse_keys(data: bytes, algorithms: tuple[str, ...]) -> dict[str, PyJWK]:
    """The keys of a document by their id: those that have one, are for signatures, and for one of `algorithms`.

    Raises:
        Unavailable: it is no set of keys, or none of them can be used.
    """
    try:
        document = parse_json(data)
    except BadRequest as error:
        raise Unavailable("no set of keys") from error
    listed = document.get("keys") if isinstance(document, dict) else None
    found = [_parse_key(each) for each in listed[:_MOST_KEYS]] if isinstance(listed, list) else []
    keys = {str(key.key_id): key for key in found if key is not None and key.algorithm_name in algorithms}
    if not keys:
        raise Unavailable("no usable key")
    return keys


def _parse_key(stated: Any) -> PyJWK | None:
    if not isinstance(stated, dict) or not isinstance(stated.get("kid"), str) or stated.get("use", "sig") != "sig":
        return None
    try:
        return PyJWK({name: stated[name] for name in _PUBLIC if name in stated})
    except (PyJWTError, ValueError, TypeError, LookupError, AttributeError):
        log.warning("a key of the issuer cannot be used")
        return None
