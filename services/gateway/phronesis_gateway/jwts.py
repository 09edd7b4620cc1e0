"""Tokens of an identity provider (JWT): whom one speaks for, once its signature, its times and its claims hold.

The header chooses a key of the configured set by `kid`, and nothing else: a key or an address that it brings along is not
looked at. The claims are read from the very bytes that the signature covers, strictly, so that no second parser can find
another claim in them.
"""

from __future__ import annotations

import json
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from jwt import PyJWTError
from jwt.api_jws import PyJWS
from pydantic import ValidationError

from phronesis_contracts import SYSTEM_TENANT, BadRequest, Unauthorized

from .domain import Key
from .messages import KeyGiven
from .ports import JwtKeys
from .scopes import SCOPES
from .settings import JwtSettings
from .strict_json import strict_json

MAX_TOKEN = 8 * 1024
"""Characters of a token; a longer one is refused unread."""
SHOWN = "jwt"
"""Stands where a key shows its secret's first characters."""
_PARTS = re.compile(r"([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TYPES = ("jwt", "at+jwt")
_LONGEST_KID = 256
_CALLERS = UUID("5f0d2a3c-6b1e-4c57-9a44-d6f1c0a7be21")
"""Namespace of the ids of callers who come with tokens."""
_JWS = PyJWS(options={"enforce_minimum_key_length": True})
_INVALID = "the token is not valid"

Claims = dict[str, Any]


class Jwts:
    """Reads tokens.

    Args:
        settings: whose tokens, and which claims say what; the issuer is set.
        keys: the issuer's public keys.
        clock: seconds since the epoch.
    """

    def __init__(self, settings: JwtSettings, keys: JwtKeys, clock: Callable[[], float] = time.time) -> None:
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
        kid, algorithm = _header(token)
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
        claims = _object(payload)
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
            "department": claims.get(names.department_claim),
            "ministry": claims.get(names.ministry_claim),
        }
        try:
            given = KeyGiven.model_validate({name: value for name, value in stated.items() if value is not None})
        except ValidationError as error:
            raise Unauthorized(_INVALID) from error
        if given.tenant is None or given.tenant == SYSTEM_TENANT:
            raise Unauthorized(_INVALID)
        claimed = _scopes(claims.get(names.scope_claim))
        return Key(
            id=str(uuid5(_CALLERS, json.dumps([claims["iss"], given.tenant, given.user]))),
            tenant=given.tenant,
            user=given.user,
            role=given.role,
            department=given.department,
            ministry=given.ministry,
            # What narrows a caller is always heard; what lifts one, only where the operator lets it.
            scopes=tuple(scope for scope in (*names.scopes, *SCOPES) if scope in claimed),
            prefix=SHOWN,
            created_at=datetime.fromtimestamp(now, UTC),
        )


def _header(token: str) -> tuple[str, str]:
    """The id of the key and the algorithm that a token's header names."""
    parts = _PARTS.fullmatch(token) if len(token) <= MAX_TOKEN else None
    if parts is None:
        raise Unauthorized(_INVALID)
    try:
        header = _object(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError as error:
        raise Unauthorized(_INVALID) from error
    kid, algorithm, kind = header.get("kid"), header.get("alg"), header.get("typ", _TYPES[0])
    # No extension is understood here, so none may be critical.
    if not isinstance(kid, str) or len(kid) > _LONGEST_KID or not isinstance(algorithm, str) or "crit" in header:
        raise Unauthorized(_INVALID)
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise Unauthorized(_INVALID)
    return kid, algorithm


def _object(data: bytes) -> Claims:
    try:
        value = strict_json(data)
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


def _scopes(claim: Any) -> list[str]:
    """The scopes of a token: words in a text, or a list of them."""
    match claim:
        case None:
            return []
        case str():
            return claim.split(" ")
        case list() if all(isinstance(scope, str) for scope in claim):
            return claim
    raise Unauthorized(_INVALID)
