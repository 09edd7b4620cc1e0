"""What the keyring remembers of keys, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from phronesis_contracts import Principal, Unauthorized, Unavailable
from phronesis_gateway.auth.keyring import FRESH, STALE, Keyring
from phronesis_gateway.auth.keys import PREFIX_LENGTH, Key, hash_secret, new_secret
from tests.support.personas import Persona


class Store:
    """Keys in memory, with a switch and a count of questions."""

    def __init__(self) -> None:
        self.keys: dict[bytes, Key] = {}
        self.down = False
        self.asked = 0
        self.meanwhile: Callable[[], object] = int

    async def by_hash(self, hash: bytes) -> Key | None:
        """The key with this hash."""
        self.asked += 1
        if self.down:
            raise Unavailable("down")
        found = self.keys.get(hash)
        self.meanwhile()
        return found

    async def by_id(self, id: str) -> Key | None:
        """The key with this id."""
        self.asked += 1
        return next((key for key in self.keys.values() if key.id == id), None)

    async def of(self, tenant: str | None, limit: int) -> Sequence[Key]:
        """Keys."""
        return [key for key in self.keys.values() if tenant in (None, key.tenant)][:limit]

    async def add(self, key: Key, hash: bytes, by: Principal) -> None:
        """Store a key."""
        self.keys[hash] = key

    async def add_absent(self, key: Key, hash: bytes) -> bool:
        """Store a key unless it is there."""
        return self.keys.setdefault(hash, key) is key

    async def revoke(self, id: str, tenant: str | None, by: Principal) -> Key | None:
        """Revoke a key."""
        for hash, key in self.keys.items():
            if key.id == id:
                self.keys[hash] = replace(key, revoked_at=datetime.now(UTC))
                return self.keys[hash]
        return None


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


SECRET = new_secret()
KEY = Key(
    id=str(uuid4()),
    tenant="acme",
    user="ann",
    **Persona.NOOR.rights,
    department="d",
    ministry=None,
    scopes=("s",),
    prefix=SECRET[:PREFIX_LENGTH],
    created_at=datetime.now(UTC),
)
BY = Principal(tenant="acme", user="boss")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store() -> Store:
    made = Store()
    await made.add(KEY, hash_secret(SECRET), BY)
    return made


@pytest.fixture
def keyring(store: Store, clock: Clock) -> Keyring:
    return Keyring(store, clock)


async def test_a_key_acts_for_its_holder(keyring: Keyring) -> None:
    expected = Principal(tenant="acme", user="ann", department="d", scopes=("s",), key=KEY.id)
    assert (await keyring.holder(SECRET), await keyring.holder_of(KEY.id)) == (expected, expected)


async def test_a_known_key_costs_no_question_while_it_is_fresh(keyring: Keyring, store: Store, clock: Clock) -> None:
    for _ in range(3):
        await keyring.holder(SECRET)
    assert store.asked == 1
    clock.now += FRESH
    await keyring.holder(SECRET)
    assert store.asked == 2


async def test_a_key_revoked_here_is_refused_at_once(keyring: Keyring, store: Store) -> None:
    await keyring.holder(SECRET)
    await store.revoke(KEY.id, None, BY)
    keyring.forget(KEY.id)
    with pytest.raises(Unauthorized):
        await keyring.holder(SECRET)


async def test_a_key_revoked_elsewhere_is_refused_once_it_is_no_longer_fresh(
    keyring: Keyring, store: Store, clock: Clock
) -> None:
    await keyring.holder(SECRET)
    await store.revoke(KEY.id, None, BY)
    clock.now += FRESH
    with pytest.raises(Unauthorized):
        await keyring.holder(SECRET)


async def test_a_row_read_before_a_revocation_is_not_remembered_after_it(keyring: Keyring, store: Store) -> None:
    store.meanwhile = lambda: keyring.forget(KEY.id)
    await keyring.holder(SECRET)
    await store.revoke(KEY.id, None, BY)
    with pytest.raises(Unauthorized):
        await keyring.holder(SECRET)


async def test_a_known_key_is_believed_a_while_without_the_store(keyring: Keyring, store: Store, clock: Clock) -> None:
    await keyring.holder(SECRET)
    store.down = True
    clock.now += STALE - 1
    assert (await keyring.holder(SECRET)).user == "ann"
    clock.now += 1
    with pytest.raises(Unavailable):
        await keyring.holder(SECRET)


async def test_an_unknown_key_is_unavailable_while_the_store_is_down(keyring: Keyring, store: Store) -> None:
    store.down = True
    with pytest.raises(Unavailable):
        await keyring.holder(new_secret())


async def test_what_cannot_be_a_key_is_never_looked_up(keyring: Keyring, store: Store) -> None:
    for text in ("", "phr_", SECRET + "x", SECRET[:-1], SECRET.upper(), "ключ"):
        with pytest.raises(Unauthorized):
            await keyring.holder(text)
    assert store.asked == 0
