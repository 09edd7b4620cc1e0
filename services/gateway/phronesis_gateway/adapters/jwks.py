"""The public keys of an identity provider (JWKS), from its address or from a file: kept, and read again as they change."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
from jwt import PyJWK, PyJWTError

from phronesis_contracts import BadRequest, Unavailable
from phronesis_gateway.settings import JwtSettings
from phronesis_gateway.strict_json import strict_json

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
_MOST = 64
"""Keys of a set that are looked at."""
_PUBLIC = ("kty", "kid", "use", "alg", "n", "e", "crv", "x", "y")
"""Members that are read; a private part that an issuer shows by mistake is not."""

Read = Callable[[], Awaitable[bytes]]


class Jwks:
    """Keys by their id. One reading is under way at most, and all who wait for it share it.

    Args:
        read: gets the document; raises `Unavailable` where it cannot be had.
        algorithms: those that a key may be for.
        clock: seconds that only grow.
    """

    def __init__(self, read: Read, algorithms: tuple[str, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._algorithms = algorithms
        self._clock = clock
        self._keys: dict[str, PyJWK] = {}
        self._read_at = self._tried_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, settings: JwtSettings) -> Jwks:
        """The keys that `settings` names, by address or by file."""
        url, path = settings.jwks_url, settings.jwks_file
        if url is not None:
            return cls(lambda: fetched(url), settings.algorithms)
        assert path is not None
        return cls(lambda: asyncio.to_thread(_file, path), settings.algorithms)

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
        """Read no more."""
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
                self._keys = parsed(await self._read(), self._algorithms)
            self._read_at = now
        except TimeoutError:
            log.warning("the issuer's keys did not come in time")
        except Unavailable as error:
            log.warning("the issuer's keys cannot be read: %s", error.detail)
        except Exception:
            log.exception("the issuer's keys could not be read")


async def fetched(url: str) -> bytes:
    """The document at `url`, which is not followed elsewhere.

    Raises:
        Unavailable: it cannot be had, or is too large.
    """
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


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unavailable(type(error).__name__) from error
    if len(data) > MAX_BYTES:
        raise Unavailable("too large")
    return data


def parsed(data: bytes, algorithms: tuple[str, ...]) -> dict[str, PyJWK]:
    """The keys of a document by their id: those that have one, are for signatures, and for one of `algorithms`.

    Raises:
        Unavailable: it is no set of keys, or none of them can be used.
    """
    try:
        document = strict_json(data)
    except BadRequest as error:
        raise Unavailable("no set of keys") from error
    listed = document.get("keys") if isinstance(document, dict) else None
    found = [_key(each) for each in listed[:_MOST]] if isinstance(listed, list) else []
    keys = {str(key.key_id): key for key in found if key is not None and key.algorithm_name in algorithms}
    if not keys:
        raise Unavailable("no usable key")
    return keys


def _key(stated: Any) -> PyJWK | None:
    if not isinstance(stated, dict) or not isinstance(stated.get("kid"), str) or stated.get("use", "sig") != "sig":
        return None
    try:
        return PyJWK({name: stated[name] for name in _PUBLIC if name in stated})
    except (PyJWTError, ValueError, TypeError, LookupError, AttributeError):
        log.warning("a key of the issuer cannot be used")
        return None
