"""The issuer's keys: when they are read, who waits for that, and how long they are believed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from phronesis_contracts import Unavailable
from phronesis_gateway.auth import tokens
from phronesis_gateway.auth.tokens import FRESH, GAP, MAX_BYTES, STALE, IssuerKeys, fetch_document, parse_keys
from tests.support.bus import eventually
from tests.support.issuer import Issuer, key_server, public, rsa_key

ALGORITHMS = ("RS256", "ES256", "EdDSA")


class Clock:
    """Time that a test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        """Now."""
        return self.now


class World:
    """An issuer, its keys as the gateway has them, and the time."""

    def __init__(self) -> None:
        self.issuer, self.clock = Issuer(), Clock()
        self.keys = IssuerKeys(self.issuer.read, ALGORITHMS, self.clock)

    async def known(self, kid: str) -> bool:
        """Whether there is a key with this id."""
        return await self.keys.by_id(kid) is not None


async def test_a_hundred_callers_at_once_cost_one_reading() -> None:
    world = World()
    assert await asyncio.gather(*(world.known("rsa") for _ in range(100))) == [True] * 100
    assert world.issuer.readings == 1


async def test_fresh_keys_are_not_read_again() -> None:
    world = World()
    await world.known("rsa")
    world.clock.now += FRESH - 1
    assert await world.known("ec")
    assert world.issuer.readings == 1


async def test_a_new_key_is_found_at_its_first_use() -> None:
    world = World()
    await world.known("rsa")
    world.issuer.keys["new"] = world.issuer.keys.pop("rsa")
    world.clock.now += GAP
    assert await world.known("new")
    assert not await world.known("rsa")
    assert world.issuer.readings == 2


async def test_made_up_ids_cost_one_reading_in_a_while() -> None:
    world = World()
    await world.known("rsa")
    for round in range(1, 4):
        world.clock.now += GAP
        assert await asyncio.gather(*(world.known(f"../{n}") for n in range(50))) == [False] * 50
        assert world.issuer.readings == 1 + round


async def test_older_keys_are_used_while_they_are_read_again_beside() -> None:
    world = World()
    await world.known("rsa")
    del world.issuer.keys["rsa"]
    world.clock.now += FRESH
    assert await world.known("rsa")
    await eventually(lambda: world.issuer.readings == 2)
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == "jwks"))
    assert not await world.known("rsa")


async def test_keys_are_believed_for_a_while_when_they_cannot_be_read_and_then_nobody_comes_in() -> None:
    world = World()
    await world.known("rsa")
    world.issuer.fault = Unavailable("gone")
    world.clock.now += STALE - 1
    assert await world.known("rsa")
    await eventually(lambda: world.issuer.readings == 2)
    world.clock.now += GAP
    with pytest.raises(Unavailable):
        await world.known("rsa")
    world.issuer.fault = None
    world.clock.now += GAP
    assert await world.known("rsa")


async def test_a_key_that_nobody_can_say_anything_about_is_no_forgery() -> None:
    world = World()
    await world.known("rsa")
    world.issuer.fault = Unavailable("gone")
    world.clock.now += GAP
    for _ in range(2):
        with pytest.raises(Unavailable):
            await world.known("perhaps-new")
    assert world.issuer.readings == 2


@pytest.mark.parametrize("fault", [Unavailable("gone"), RuntimeError("bug"), TimeoutError()])
async def test_without_any_keys_it_is_unavailable(fault: Exception) -> None:
    world = World()
    world.issuer.fault = fault
    with pytest.raises(Unavailable):
        await world.known("rsa")


async def test_a_reading_that_is_too_slow_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "SECONDS", 0.05)
    keys = IssuerKeys(lambda: asyncio.get_running_loop().create_future(), ALGORITHMS)
    with pytest.raises(Unavailable):
        await keys.by_id("rsa")


async def test_who_leaves_takes_nobodys_reading_along() -> None:
    world = World()
    gate = asyncio.Event()

    async def read() -> bytes:
        await gate.wait()
        return world.issuer.document

    keys = IssuerKeys(read, ALGORITHMS)
    leaver, stayer = (asyncio.create_task(keys.by_id("rsa")) for _ in range(2))
    await eventually(lambda: any(task.get_name() == "jwks" for task in asyncio.all_tasks()))
    leaver.cancel()
    gate.set()
    assert await stayer is not None


def test_of_a_set_only_what_can_verify_signatures_is_taken() -> None:
    curve = ec.generate_private_key(ec.SECP256R1())
    listed: list[Any] = [
        public(curve, kid="good"),
        public(curve, kid="for encryption", use="enc"),
        public(ec.generate_private_key(ec.SECP384R1()), kid="not allowed"),
        public(curve, kid="another algorithm", alg="HS256"),
        {"kty": "oct", "kid": "a secret", "k": "c2VjcmV0"},
        {"kty": "RSA", "kid": "broken", "n": "AQ", "e": 5},
        {"kty": "EC", "kid": "off the curve", "crv": "P-256", "x": "AQ", "y": "AQ"},
        {"kty": "EC", "kid": 7},
        public(curve),
        "text",
        None,
    ]
    assert list(parse_keys(json.dumps({"keys": listed}).encode(), ALGORITHMS)) == ["good"]


@pytest.mark.parametrize(
    "document", [b"", b"{", b"[]", b"null", b'{"keys": null}', b'{"keys": {}}', b'{"keys": []}', b'{"keys": [1]}', b"[" * 9_999]
)
def test_what_is_no_set_of_keys_is_unavailable(document: bytes) -> None:
    with pytest.raises(Unavailable):
        parse_keys(document, ALGORITHMS)


async def test_keys_come_from_an_address_or_from_a_file(tmp_path: Path) -> None:
    issuer, file = Issuer(), tmp_path / "keys.json"
    file.write_bytes(issuer.document)
    async with key_server() as server:
        server.body = issuer.document
        by_address = IssuerKeys.of(issuer.settings(jwks_url=server.url))
        by_file = IssuerKeys.of(issuer.settings(jwks_url=None, jwks_file=file))
        assert await by_address.by_id("rsa") is not None
        assert await by_file.by_id("rsa") is not None


async def test_what_an_address_answers_is_bounded_and_not_followed() -> None:
    async with key_server() as server:
        server.body = b" " * (MAX_BYTES + 1)
        with pytest.raises(Unavailable, match="too large"):
            await fetch_document(server.url)
        server.status, server.body, server.more = 302, b"", f"Location: {server.url}\r\n"
        with pytest.raises(Unavailable, match="302"):
            await fetch_document(server.url)
        server.status = 500
        with pytest.raises(Unavailable, match="500"):
            await fetch_document(server.url)
        assert server.asked == 3
    with pytest.raises(Unavailable, match="ConnectError"):
        await fetch_document(server.url)


async def test_a_file_that_is_away_or_too_large_is_unavailable(tmp_path: Path) -> None:
    for file, size in ((tmp_path / "none", None), (tmp_path / "large", MAX_BYTES + 1)):
        if size:
            file.write_bytes(b" " * size)
        with pytest.raises(Unavailable):
            await IssuerKeys.of(Issuer().settings(jwks_url=None, jwks_file=file)).by_id("rsa")


def test_a_private_half_that_an_issuer_shows_is_not_read() -> None:
    key = rsa_key("issuer")
    shown = public(key, kid="rsa") | {"d": "AQAB", "p": "AQAB", "oth": []}
    assert parse_keys(json.dumps({"keys": [shown]}).encode(), ALGORITHMS)["rsa"].key == key.public_key()
