"""Keys, of the API and of the bus: made, listed and revoked by administrators."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from phronesis_bus import Bus, Credentials, News, revoke, sign_credentials
from phronesis_contracts import Agent, Forbidden, NotFound, Principal, Role, ServiceError, Token
from phronesis_contracts.service import KeyRevoked

from ..http.requests import BusKeyGiven, KeyGiven
from ..http.responses import ID_FORM, PROBLEMS, json_response, route_responses
from .authentication import Authenticator, Caller, audit_refusal, authenticated_route
from .keyring import Keyring
from .keys import (
    PREFIX_LENGTH,
    Key,
    KeyStore,
    find_tools,
    hash_secret,
    narrow_reader,
    new_secret,
    require_bus_maker,
    require_maker,
    require_manager,
    require_narrower,
    require_owner,
    visible_tenant,
)

log = logging.getLogger(__name__)

_AGAIN = 5.0


async def _end_of(who: Principal, store: KeyStore) -> datetime | None:
    """When the key that `who` comes with ends; `None` for never."""
    own = await store.by_id(who.key) if who.key else None
    return own.expires_at if own else None


class BusKeys:
    """What administrators do with keys of the bus, and what becomes of those that they revoke."""

    def __init__(self, bus: Bus, store: KeyStore) -> None:
        self._bus = bus
        self._store = store

    async def make(self, who: Principal, given: BusKeyGiven) -> tuple[Key, Credentials]:
        """Make a key; what an outside system comes in with is signed here and kept nowhere.

        Raises:
            Forbidden: `who` may not; that is audited.
        """
        now = datetime.now(UTC)
        ends = now + timedelta(days=given.days)
        try:
            require_bus_maker(who, given.tenant)
            require_narrower(who, await _end_of(who, self._store), None, ends)
        except Forbidden as error:
            await audit_refusal(self._bus, who, "keys.create", given.model_dump(mode="json"), error)
            raise
        stated = given.model_dump(exclude={"days"})
        key = Key(id=str(uuid4()), scopes=(), prefix="", created_at=now, bus=True, expires_at=ends, **stated)
        made = sign_credentials(self._bus, key.principal, given.days * 86_400.0)
        # The hash of what it comes in with opens nothing here: that has not the form of a secret.
        await self._store.add(key, hash_secret(made.password), who)
        return key, made

    async def on_key_revoked(self, news: News, event: KeyRevoked) -> None:
        """A key was revoked: one of the bus is believed by nobody from here on."""
        key = await self._store.by_id(event.key)
        if key is not None and key.bus:
            await revoke(self._bus, key.id)

    def start(self) -> None:
        """Say which keys are revoked, now and whenever the broker is found again: it may have lost what it kept."""
        lost = asyncio.Event()
        self._bus.on_reconnect(lost.set)
        task = asyncio.create_task(self._remind(lost), name="revoked-keys")

        async def stop() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._bus.on_stop(stop)

    async def _remind(self, lost: asyncio.Event) -> None:
        while True:
            lost.clear()
            try:
                for key in await self._store.revoked_of_bus():
                    await revoke(self._bus, key)
                await lost.wait()
            except ServiceError as error:
                log.warning("which keys are revoked could not be said again: %s", error.code)
            except Exception:
                # A schema that is not migrated yet is no reason to give up for good.
                log.exception("which keys are revoked could not be said again")
            await asyncio.sleep(_AGAIN)


KeyId = Annotated[str, Path(description="The key's id."), ID_FORM]
KEYS = "/api/v1/keys"
DEPRECATION = "Phronesis-Deprecation"
"""Header that says what of a request the next version does not take any more."""


class KeyShown(BaseModel):
    """A key without its secret."""

    id: str
    """Its id, to look it up and to revoke it by."""
    tenant: str
    """The tenant whose data it opens."""
    user: str
    """The user whom its requests act for."""
    role: Role
    """What its requests may do."""
    agents: tuple[Agent, ...]
    """Agents that its requests may act as; empty for owners and administrators, who may act as all."""
    department: str | None
    """The user's department, whose shared memory it opens; absent where none was stated."""
    ministry: str | None
    """The user's ministry, whose shared memory it opens; absent where none was stated."""
    scopes: tuple[str, ...]
    """What it may do beyond its role and agents, or what alone it may do; empty for neither."""
    prefix: str
    """The secret's first characters, to tell keys apart."""
    created_at: datetime
    """When it was made."""
    revoked_at: datetime | None
    """When it was revoked; absent where it is good."""
    bus: bool = False
    """Whether it opens the bus, and not this API."""
    expires_at: datetime | None = None
    """When it ends by itself."""
    tools: tuple[str, ...] | None = None
    """The only tools that it may call, and all that it opens; absent where its role and agents say what it may do."""


class KeyMade(KeyShown):
    """A key just made. Its secret is shown this once."""

    key: str
    """The secret, for the header `Authorization: Bearer`. Keep it: it cannot be shown again."""


class Me(BaseModel):
    """Whom the caller's requests act for, and what they may do."""

    tenant: str = Field(description="The tenant.")
    user: str = Field(description="The user.")
    role: Role = Field(description="What the user may do.")
    agents: tuple[Agent, ...] = Field(description="Agents that it may act as; empty for administrators, who may act as all.")
    department: str | None = Field(default=None, description="The user's department, whose memories it reads.")
    ministry: str | None = Field(default=None, description="The user's ministry, whose memories it reads.")
    scopes: tuple[str, ...] = Field(description="What a narrowed key may do; empty for one that is not narrowed.")
    key: str | None = Field(default=None, description="Id of the key.")


class KeyList(BaseModel):
    """Keys, newest first."""

    keys: tuple[KeyShown, ...]
    """The keys, the newest first."""


class _KeyManager:
    """What administrators do with keys."""

    def __init__(self, bus: Bus, store: KeyStore, keyring: Keyring) -> None:
        self._bus = bus
        self._store = store
        self._keyring = keyring

    async def make(self, who: Principal, given: KeyGiven) -> KeyMade:
        tenant = given.tenant or who.tenant
        now = datetime.now(UTC)
        tools = None if given.tools is None else find_tools(given.tools)
        ends = None if given.days is None else now + timedelta(days=given.days)
        try:
            require_maker(who, tenant, given.scopes, given.role)
            require_narrower(who, await _end_of(who, self._store), tools, ends)
        except Forbidden as error:
            await audit_refusal(self._bus, who, "keys.create", given.model_dump(mode="json"), error)
            raise
        secret = new_secret()
        scopes = narrow_reader(given.role, given.scopes)
        stated: dict[str, Any] = given.model_dump(exclude={"days"})
        stated |= {"tenant": tenant, "scopes": scopes, "tools": tools, "expires_at": ends}
        key = Key(id=str(uuid4()), prefix=secret[:PREFIX_LENGTH], created_at=now, **stated)
        await self._store.add(key, hash_secret(secret), who)
        return KeyMade(**asdict(key), key=secret)

    async def may_see(self, who: Principal, action: str, arguments: dict[str, Any]) -> str | None:
        try:
            require_manager(who)
        except Forbidden as error:
            await audit_refusal(self._bus, who, action, arguments, error)
            raise
        return visible_tenant(who)

    async def one(self, who: Principal, id: str) -> Key:
        tenant = await self.may_see(who, "keys.get", {"id": id})
        key = await self._store.by_id(_require_uuid(id))
        if key is None or tenant not in (None, key.tenant):
            raise NotFound("there is no such key")
        return key

    async def revoke(self, who: Principal, id: str) -> Key:
        tenant = await self.may_see(who, "keys.revoke", {"id": id})
        known = await self._store.by_id(_require_uuid(id))
        if known is not None and tenant in (None, known.tenant):
            try:
                require_owner(who, known.role)
            except Forbidden as error:
                await audit_refusal(self._bus, who, "keys.revoke", {"id": id}, error)
                raise
        key = await self._store.revoke(_require_uuid(id), tenant, who)
        if key is None:
            raise NotFound("there is no such key")
        self._keyring.forget(key.id)
        return key


def keys_router(authenticator: Authenticator, bus: Bus, store: KeyStore, keyring: Keyring) -> APIRouter:
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["keys"])
    manager = _KeyManager(bus, store, keyring)

    @routes.post(KEYS, status_code=201, responses=route_responses(KeyMade, 201))
    async def create_key(given: KeyGiven, who: Caller) -> Response:
        """Make a key.

        Its secret is in the answer, this once. No key is good for longer than the one that it is made with. Administrators make
        keys for their own tenant, make none for an owner, and give no scope that their own key lacks except `act_for_users`;
        owners make keys for owners too, and the scope `operator` lifts all of that but the end.
        """
        made = await manager.make(who, given)
        return json_response(made, 201, {"Location": f"{KEYS}/{made.id}", **_deprecation(who, given)})

    @routes.get(KEYS, responses=route_responses(KeyList))
    async def list_keys(
        who: Caller,
        tenant: Annotated[Token | None, Query(description="Only keys of this tenant.")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000, description="Keys at most.")] = 200,
    ) -> Response:
        """List keys.

        Those of the administrator's tenant; the scope `operator` sees those of all. Secrets are not shown.
        """
        own = await manager.may_see(who, "keys.list", {})
        if own is not None and tenant not in (None, own):
            return json_response(KeyList(keys=()))
        found = await store.of(tenant or own, limit)
        return json_response(KeyList(keys=tuple(KeyShown(**asdict(key)) for key in found)))

    @routes.get(KEYS + "/{id}", responses=route_responses(KeyShown))
    async def get_key(id: KeyId, who: Caller) -> Response:
        """Get a key.

        Without its secret. For administrators.
        """
        return json_response(KeyShown(**asdict(await manager.one(who, id))))

    @routes.delete(KEYS + "/{id}", responses=route_responses(KeyShown))
    async def revoke_key(id: KeyId, who: Caller) -> Response:
        """Revoke a key.

        It opens nothing from then on, and its turns end when they are next taken up. A second time changes nothing.
        """
        return json_response(KeyShown(**asdict(await manager.revoke(who, id))))

    return routes


def me_router(authenticator: Authenticator) -> APIRouter:
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["keys"])

    @routes.get("/api/v1/me", responses=route_responses(Me))
    async def get_me(who: Caller) -> Response:
        """Get who you are.

        The tenant, the user and the rights that the caller's key or session stands for.
        """
        return json_response(Me.model_validate(who, from_attributes=True))

    return routes


def _require_uuid(id: str) -> str:
    try:
        return str(UUID(id))
    except ValueError as error:
        raise NotFound("there is no such key") from error


def _deprecation(who: Principal, given: KeyGiven | BusKeyGiven) -> dict[str, str]:
    """The header that says so where a key was made with a role of the version before."""
    if given.deprecation is None:
        return {}
    log.warning("%s of %s makes a key: %s", who.user, who.tenant, given.deprecation)
    return {DEPRECATION: given.deprecation}


class BusKeyMade(KeyShown):
    """A key of the bus just made. What an outside system comes in with is shown this once."""

    servers: tuple[str, ...]
    """Where the broker is, as the platform itself reaches it."""
    nats_user: str
    """User at the broker."""
    nats_password: str
    """Password at the broker."""
    token: str
    """Goes with each message, in the header `Phronesis-Principal`."""
    inbox: str
    """Prefix of the subjects on which answers are heard."""
    expires_at: datetime
    """When it ends by itself."""


def bus_keys_router(authenticator: Authenticator, bus: Bus, keys: BusKeys) -> APIRouter:
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["keys"])
    servers = tuple(_address_without_login(url) for url in bus.settings.url.split(","))

    @routes.post(f"{KEYS}/bus", status_code=201, responses=route_responses(BusKeyMade, 201))
    async def create_bus_key(given: BusKeyGiven, who: Caller) -> Response:
        """Make a key for an outside system on the bus.

        What the system comes in with is in the answer, this once. It takes the scope `operator`.
        """
        key, made = await keys.make(who, given)
        shown = {"nats_user": made.user, "nats_password": made.password, "token": made.token, "inbox": made.inbox}
        body = BusKeyMade(**asdict(key), servers=servers, **shown)
        return json_response(body, 201, {"Location": f"{KEYS}/{key.id}", **_deprecation(who, given)})

    return routes


def _address_without_login(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
