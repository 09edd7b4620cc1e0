"""Keys: made, listed and revoked by administrators."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import Response

from phronesis_bus import Bus
from phronesis_contracts import Forbidden, NotFound, Principal, Role, Token
from phronesis_gateway.answers import PROBLEMS, Id, answers, as_json
from phronesis_gateway.audit import refused
from phronesis_gateway.domain import SHOWN, Key, digest, may_make, may_manage, new_secret, seen_by
from phronesis_gateway.door import Caller, Door, keyed
from phronesis_gateway.keyring import Keyring
from phronesis_gateway.messages import KeyGiven
from phronesis_gateway.ports import KeyStore

KEYS = "/api/v1/keys"


class KeyShown(BaseModel):
    """A key without its secret."""

    id: str
    tenant: str
    user: str
    role: Role
    department: str | None
    ministry: str | None
    scopes: tuple[str, ...]
    prefix: str
    """The secret's first characters, to tell keys apart."""
    created_at: datetime
    revoked_at: datetime | None
    bus: bool = False
    """Whether it opens the bus, and not this API."""
    expires_at: datetime | None = None
    """When it ends by itself."""


class KeyMade(KeyShown):
    """A key just made. Its secret is shown this once."""

    key: str


class KeyList(BaseModel):
    """Keys, newest first."""

    keys: tuple[KeyShown, ...]


class _Manager:
    """What administrators do with keys."""

    def __init__(self, bus: Bus, store: KeyStore, keyring: Keyring) -> None:
        self._bus = bus
        self._store = store
        self._keyring = keyring

    async def make(self, who: Principal, given: KeyGiven) -> KeyMade:
        tenant = given.tenant or who.tenant
        try:
            may_make(who, tenant, given.scopes)
        except Forbidden as error:
            await refused(self._bus, who, "keys.create", given.model_dump(mode="json"), error)
            raise
        secret = new_secret()
        stated: dict[str, Any] = given.model_dump() | {"tenant": tenant}
        key = Key(id=str(uuid4()), prefix=secret[:SHOWN], created_at=datetime.now(UTC), **stated)
        await self._store.add(key, digest(secret), who)
        return KeyMade(**asdict(key), key=secret)

    async def may_see(self, who: Principal, action: str, arguments: dict[str, Any]) -> str | None:
        """The tenant whose keys `who` sees; `None` for all."""
        try:
            may_manage(who)
        except Forbidden as error:
            await refused(self._bus, who, action, arguments, error)
            raise
        return seen_by(who)

    async def one(self, who: Principal, id: str) -> Key:
        tenant = await self.may_see(who, "keys.get", {"id": id})
        key = await self._store.by_id(_uuid(id))
        if key is None or tenant not in (None, key.tenant):
            raise NotFound("there is no such key")
        return key

    async def revoke(self, who: Principal, id: str) -> Key:
        tenant = await self.may_see(who, "keys.revoke", {"id": id})
        key = await self._store.revoke(_uuid(id), tenant, who)
        if key is None:
            raise NotFound("there is no such key")
        self._keyring.forget(key.id)
        return key


def router(door: Door, bus: Bus, store: KeyStore, keyring: Keyring) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
        store: where keys are kept.
        keyring: forgets a key that is revoked.
    """
    routes = APIRouter(route_class=keyed(door), responses=PROBLEMS, tags=["keys"])
    manager = _Manager(bus, store, keyring)

    @routes.post(KEYS, status_code=201, responses=answers(KeyMade, 201))
    async def create_key(given: KeyGiven, who: Caller) -> Response:
        """Make a key. An administrator makes keys for its own tenant; the scope `operator` lifts that."""
        made = await manager.make(who, given)
        return as_json(made, 201, {"Location": f"{KEYS}/{made.id}"})

    @routes.get(KEYS, responses=answers(KeyList))
    async def list_keys(
        who: Caller, tenant: Token | None = None, limit: Annotated[int, Query(ge=1, le=1_000)] = 200
    ) -> Response:
        """The keys of the administrator's tenant; the scope `operator` sees those of all."""
        own = await manager.may_see(who, "keys.list", {})
        if own is not None and tenant not in (None, own):
            return as_json(KeyList(keys=()))
        found = await store.of(tenant or own, limit)
        return as_json(KeyList(keys=tuple(KeyShown(**asdict(key)) for key in found)))

    @routes.get(KEYS + "/{id}", responses=answers(KeyShown))
    async def get_key(id: Id, who: Caller) -> Response:
        """One key."""
        return as_json(KeyShown(**asdict(await manager.one(who, id))))

    @routes.delete(KEYS + "/{id}", responses=answers(KeyShown))
    async def revoke_key(id: Id, who: Caller) -> Response:
        """Revoke a key; its turns end at their next claim. A second time changes nothing."""
        return as_json(KeyShown(**asdict(await manager.revoke(who, id))))

    return routes


def _uuid(id: str) -> str:
    try:
        return str(UUID(id))
    except ValueError as error:
        raise NotFound("there is no such key") from error
