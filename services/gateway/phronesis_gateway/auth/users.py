"""Users of a tenant: who they are, what they did; their data, erased with a proof, and kept for as long as the tenant says."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict
from starlette.responses import Response

from phronesis_bus import Bus, Kind, Metric, ask, audit_entry, work_in_background
from phronesis_contracts import Conflict, Forbidden, NotFound, Nothing, Principal, Role, ServiceError
from phronesis_contracts.deletions import (
    AGED_DROP,
    OWNER_OF_AGED,
    USER_DATA,
    USER_ERASE,
    Aged,
    Counts,
    DeletionState,
    DropAged,
    Erasure,
    ErasureList,
    Retention,
    UserData,
    UserPreview,
)
from phronesis_contracts.orchestrator import AUDIT_LIST, USER_LIST, AuditPage, ListAudit, ListUsers, SeenUser
from phronesis_contracts.service import AUDITED, KEY_REVOKED, KeyRevoked
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news

from ..http.responses import ID_FORM, PROBLEMS, json_response, refusals, route_responses
from .authentication import Authenticator, Caller, audit_refusal, authenticated_route
from .keyring import Keyring
from .keys import name_user, require_owner
from .tokens import TOKEN_PREFIX

log = logging.getLogger(__name__)

SERVICE = "gateway"
ERASED = "(erased)"
"""Stands in a key that has to be known as revoked in place of its user; it can be nobody's name."""
_LEASE = 45.0
"""Seconds after which a step of an erasure that another process had begun is made here: more than one question takes."""
_QUIET = 5.0
"""Seconds between two scans that both find nothing: what was on its way when the first was made, the second one sees."""
_AGAIN = 2.0
"""Seconds until what a scan still found is erased again."""
_ROUND = 3_600.0
"""Seconds between two sweeps of a tenant's old data."""
SWEPT = Metric(
    "phronesis_retention_removed", Kind.COUNTER, "What was deleted since its tenant does not keep it longer.", ("what",)
)
_EVERY = "id, tenant, user_id, requested_by, requested_at, before, after, kept, clean_at, completed_at, digest"
_BEGIN = """
    INSERT INTO erasures (id, tenant, user_id, requested_by) VALUES ($1, $2, $3, $4)
    ON CONFLICT (tenant, user_id) WHERE completed_at IS NULL DO NOTHING RETURNING true"""
_OPEN = f"SELECT {_EVERY} FROM erasures WHERE tenant = $1 AND user_id = $2 AND completed_at IS NULL"  # noqa: S608
_ONE = f"SELECT {_EVERY} FROM erasures WHERE tenant = $1 AND id = $2"  # noqa: S608
_LIST = f"SELECT {_EVERY} FROM erasures WHERE tenant = $1 ORDER BY requested_at DESC, id LIMIT $2"  # noqa: S608
_CLAIM = f"""
    UPDATE erasures SET due = now() + make_interval(secs => $1) WHERE id = (
        SELECT id FROM erasures WHERE completed_at IS NULL AND due <= now() ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING {_EVERY}"""  # noqa: S608
_RENEW = "UPDATE erasures SET due = now() + make_interval(secs => $3) WHERE tenant = $1 AND id = $2 AND completed_at IS NULL"
_COUNTED = "UPDATE erasures SET before = $3 WHERE tenant = $1 AND id = $2"
_SCANNED = "UPDATE erasures SET clean_at = $3, due = now() + make_interval(secs => $4) WHERE tenant = $1 AND id = $2"
_COMPLETE = """
    UPDATE erasures SET after = $3, kept = $4, completed_at = $5, digest = $6
    WHERE tenant = $1 AND id = $2 AND completed_at IS NULL RETURNING true"""
_OTHER_ADMIN = """
    SELECT EXISTS (SELECT FROM keys WHERE tenant = $1 AND "user" <> $2 AND role = 'admin' AND revoked_at IS NULL
        AND NOT bus AND (expires_at IS NULL OR expires_at > now())
        AND tools IS NULL AND (NOT scopes @> '{phronesis:read}' OR scopes @> '{phronesis:write}'))"""
"""Whether somebody else administers the tenant: not with a key that calls some tools alone, or changes nothing."""
_OWNS = """SELECT EXISTS (SELECT FROM keys WHERE tenant = $1 AND "user" = $2 AND access = 'owner' AND revoked_at IS NULL)"""
# A key without `access` was entered by a copy of the version before.
_HOLDERS = """
    SELECT "user", count(*) AS keys,
        array_agg(DISTINCT coalesce(access, CASE role WHEN 'admin' THEN 'admin' ELSE 'member' END)) AS roles
    FROM keys WHERE tenant = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
        AND "user" COLLATE "C" > $2 AND position($3 IN "user") > 0
    GROUP BY "user" ORDER BY "user" COLLATE "C" LIMIT $4"""
_KEYS = 'SELECT count(*) FROM keys WHERE tenant = $1 AND "user" = $2'
_REVOKE = 'UPDATE keys SET revoked_at = now() WHERE tenant = $1 AND "user" = $2 AND revoked_at IS NULL RETURNING id'
# Whoever comes in with tokens of a provider is entered anew when they come back, unless they were shut out before.
_DROP_ADMITTED = 'DELETE FROM keys WHERE tenant = $1 AND "user" = $2 AND prefix = $3 AND revoked_at IS NULL'
_END_KEYS = """
    UPDATE keys SET revoked_at = expires_at WHERE id IN (
        SELECT id FROM keys WHERE NOT bus AND revoked_at IS NULL AND expires_at <= now() LIMIT 100 FOR UPDATE SKIP LOCKED
    ) RETURNING id, tenant"""
# A revoked key stays known as such: one of the bus would be good again without.
_UNNAME = 'UPDATE keys SET "user" = $3, department = NULL, ministry = NULL WHERE tenant = $1 AND "user" = $2'
_KEEP = """
    INSERT INTO retention (tenant, days, updated_by) VALUES ($1, $2, $3)
    ON CONFLICT (tenant) DO UPDATE SET days = excluded.days, updated_by = excluded.updated_by, updated_at = now(),
        next_at = now()"""
_DUE = """
    UPDATE retention SET next_at = now() + make_interval(secs => $1) WHERE tenant = (
        SELECT tenant FROM retention WHERE next_at <= now() ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING tenant, days"""
_SOON = "UPDATE retention SET next_at = now() WHERE tenant = $1"


@dataclass(frozen=True)
class ErasureRow:
    """An erasure as it is stored."""

    id: str
    tenant: str
    user: str
    requested_by: str
    requested_at: datetime
    before: Counts
    after: Counts
    kept: Counts
    clean_at: datetime | None
    completed_at: datetime | None
    digest: str | None

    def digest_at(self, at: datetime, after: Counts, kept: Counts) -> str:
        """The SHA-256 of what the proof says, as JSON with sorted names and without spaces."""
        said = {
            "erasure_id": self.id,
            "tenant": self.tenant,
            "user": self.user,
            "requested_by": self.requested_by,
            "requested_at": self.requested_at.astimezone(UTC).isoformat(),
            "completed_at": at.astimezone(UTC).isoformat(),
            "before": self.before,
            "after": after,
            "kept": kept,
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class PostgresUsers:
    """The tables `erasures` and `retention`, and users' keys as far as they go with them."""

    def __init__(self, database: Database, written: Callable[[], None]) -> None:
        self._database, self._written = database, written

    async def begin(self, by: Principal, user: str) -> tuple[ErasureRow, list[str]]:
        """Begin the erasure of a user, once while it goes on; with the ids of the keys that ended with it.

        Raises:
            Conflict: the tenant would be left without an administrator.
            Forbidden: an administrator would revoke the keys of an owner.
        """
        async with self._database.transaction(by.tenant) as connection:
            if by.user != user and await connection.fetchval(_OWNS, by.tenant, user):
                require_owner(by, Role.OWNER)
            if by.user == user and by.administers and not await connection.fetchval(_OTHER_ADMIN, by.tenant, user):
                raise Conflict("this is the tenant's last administrator: make a key for another one first")
            keys: list[str] = []
            if await connection.fetchval(_BEGIN, uuid4(), by.tenant, user, by.user):
                row = _row(await connection.fetchrow(_OPEN, by.tenant, user))
                counts = {SERVICE: {"keys": int(await connection.fetchval(_KEYS, by.tenant, user))}}
                await connection.execute(_COUNTED, by.tenant, UUID(row.id), counts)
                keys = await revoke_all(connection, by.tenant, user)
                entry = audit_entry(by, "user.erase", {"erasure_id": row.id, "user": user})
                await write_news(connection, SERVICE, by.tenant, AUDITED[SERVICE], entry)
            row = _row(await connection.fetchrow(_OPEN, by.tenant, user))
        self._written()
        return row, keys

    async def keys(self, tenant: str, user: str) -> int:
        """How many keys name a user."""
        async with self._database.connection(tenant) as connection:
            return int(await connection.fetchval(_KEYS, tenant, user))

    async def holders(self, tenant: str, after: str, text: str, limit: int) -> list[UserShown]:
        """Who has keys of a tenant that are good, by name; arguments as of the route."""
        async with self._database.connection(tenant) as connection:
            rows = await connection.fetch(_HOLDERS, tenant, after, text, limit)
        return [UserShown(user=row["user"], roles=tuple(map(Role, row["roles"])), keys=row["keys"]) for row in rows]

    async def one(self, tenant: str, id: str) -> ErasureRow:
        """An erasure of a tenant. Raises `NotFound`."""
        try:
            number = UUID(id)
        except ValueError:
            raise NotFound("there is no such erasure") from None
        async with self._database.connection(tenant) as connection:
            found = await connection.fetchrow(_ONE, tenant, number)
        if found is None:
            raise NotFound("there is no such erasure")
        return _row(found)

    async def newest(self, tenant: str, limit: int) -> list[ErasureRow]:
        """The erasures of a tenant, the newest first."""
        async with self._database.connection(tenant) as connection:
            return [_row(row) for row in await connection.fetch(_LIST, tenant, limit)]

    async def claim_erasure(self) -> ErasureRow | None:
        """The erasure that waits longest, for this process alone for a while; `None` where none waits."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            row = await connection.fetchrow(_CLAIM, _LEASE)
        return _row(row) if row is not None else None

    async def renew(self, row: ErasureRow) -> None:
        """Keep an erasure for this process for a while longer."""
        async with self._database.transaction(row.tenant) as connection:
            await connection.execute(_RENEW, row.tenant, UUID(row.id), _LEASE)

    async def counted(self, row: ErasureRow, before: Counts) -> None:
        """Keep what there was before anything was erased."""
        async with self._database.transaction(row.tenant) as connection:
            await connection.execute(_COUNTED, row.tenant, UUID(row.id), before)

    async def end_keys(self, row: ErasureRow) -> None:
        """Revoke the keys that are left of a user, as a restored backup brings them back, and name the user in none."""
        async with self._database.transaction(row.tenant) as connection:
            await revoke_all(connection, row.tenant, row.user)
            await connection.execute(_UNNAME, row.tenant, row.user, ERASED)
        self._written()

    async def end_expired_keys(self) -> bool:
        """Revoke keys of the API whose time is over, so that nothing goes on with them; whether there were any."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            rows = await connection.fetch(_END_KEYS)
            for row in rows:
                await write_news(connection, SERVICE, row["tenant"], KEY_REVOKED, KeyRevoked(key=str(row["id"])))
        if rows:
            self._written()
        return bool(rows)

    async def scanned(self, row: ErasureRow, clean_at: datetime | None, seconds: float) -> None:
        """Keep when a scan first found nothing, and come again after so many seconds."""
        async with self._database.transaction(row.tenant) as connection:
            await connection.execute(_SCANNED, row.tenant, UUID(row.id), clean_at, seconds)

    async def complete(self, row: ErasureRow, after: Counts, kept: Counts) -> None:
        """Keep the proof, with its entry in the audit."""
        at = datetime.now(UTC)
        digest = row.digest_at(at, after, kept)
        by = Principal(tenant=row.tenant, user=row.requested_by)
        async with self._database.transaction(row.tenant) as connection:
            if await connection.fetchval(_COMPLETE, row.tenant, UUID(row.id), after, kept, at, digest):
                entry = audit_entry(by, "user.erased", {"erasure_id": row.id, "digest": digest})
                await write_news(connection, SERVICE, row.tenant, AUDITED[SERVICE], entry)
        self._written()

    async def retention(self, tenant: str) -> Retention:
        """For how many days a tenant keeps what."""
        async with self._database.connection(tenant) as connection:
            days = await connection.fetchval("SELECT days FROM retention WHERE tenant = $1", tenant)
        return Retention.model_validate(days or {})

    async def keep(self, by: Principal, wanted: Retention) -> None:
        """Set for how many days a tenant keeps what, and sweep soon."""
        days = wanted.model_dump(exclude_none=True)
        async with self._database.transaction(by.tenant) as connection:
            await connection.execute(_KEEP, by.tenant, days, by.user)
            await write_news(connection, SERVICE, by.tenant, AUDITED[SERVICE], audit_entry(by, "retention.set", days))
        self._written()

    async def claim_retention(self) -> tuple[str, dict[str, int]] | None:
        """The tenant whose sweep is due longest, and for how many days it keeps what; `None` where none is due."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            row = await connection.fetchrow(_DUE, _ROUND)
        return (row["tenant"], row["days"]) if row is not None else None

    async def swept(self, tenant: str, removed: Mapping[str, int], *, done: bool) -> None:
        """Enter a sweep in the audit, and let one that is not done go on once the others had their turn."""
        async with self._database.transaction(tenant) as connection:
            if not done:
                await connection.execute(_SOON, tenant)
            if removed:
                entry = audit_entry(_sweeper(tenant), "retention.sweep", dict(removed))
                await write_news(connection, SERVICE, tenant, AUDITED[SERVICE], entry)
        self._written()


async def revoke_all(connection: Connection, tenant: str, user: str) -> list[str]:
    """Revoke every key of a user and announce it, and end their sessions; the keys' ids."""
    await connection.execute(_DROP_ADMITTED, tenant, user, TOKEN_PREFIX)
    await connection.execute('DELETE FROM sessions WHERE tenant = $1 AND "user" = $2', tenant, user)
    keys = [str(row["id"]) for row in await connection.fetch(_REVOKE, tenant, user)]
    for key in keys:
        await write_news(connection, SERVICE, tenant, KEY_REVOKED, KeyRevoked(key=key))
    return keys


def _row(row: Any) -> ErasureRow:
    fields = dict(row)
    return ErasureRow(id=str(fields.pop("id")), user=fields.pop("user_id"), **fields)


def _sweeper(tenant: str) -> Principal:
    return Principal(tenant=tenant, user=SERVICE, role=Role.ADMIN)


class Keeper:
    """Erases users step by step, and sweeps what tenants do not keep; whatever it has done stands in the store."""

    def __init__(self, bus: Bus, users: PostgresUsers) -> None:
        self._bus, self._users = bus, users
        self.wake = asyncio.Event()

    def start(self) -> None:
        """Work until the bus stops."""
        work_in_background(self._bus, "erasures of users", self.erase, self.wake)
        work_in_background(self._bus, "sweeps of retention", self.sweep, asyncio.Event())
        work_in_background(self._bus, "keys that end", self._users.end_expired_keys, asyncio.Event())

    async def data(self, who: Principal) -> dict[str, UserData]:
        """What every service holds of a user. Raises `ServiceError`: one of them does not answer."""
        services = list(USER_DATA)
        found = await asyncio.gather(*(ask(self._bus, who, USER_DATA[name], Nothing()) for name in services))
        keys = await self._users.keys(who.tenant, who.user)
        return {SERVICE: UserData(held={"keys": keys} if keys else {}), **dict(zip(services, found, strict=True))}

    async def erase(self) -> bool:
        """Take up an erasure, and go on with it until a scan; whether there was one. Raises `ServiceError`."""
        row = await self._users.claim_erasure()
        if row is None:
            return False
        try:
            await self._go_on(row)
        except ServiceError:
            # Whoever did not answer may do so in a moment, long before the lease ends.
            await self._users.scanned(row, None, _QUIET)
            raise
        return True

    async def _go_on(self, row: ErasureRow) -> None:
        who = Principal(tenant=row.tenant, user=row.user)
        before = row.before
        if SERVICE not in before:  # a restored backup asks for it, and holds keys that were good at the time
            before = {SERVICE: {"keys": await self._users.keys(row.tenant, row.user)}}
            await self._users.counted(row, before)
        await self._users.end_keys(row)
        if len(before) == 1:
            await self._users.counted(row, held_counts(await self.data(who)) | before)
        for service in USER_ERASE:
            while not (await ask(self._bus, who, USER_ERASE[service], Nothing())).done:
                await self._users.renew(row)
            await self._users.renew(row)
        data = await self.data(who)
        left, now = held_counts(data), datetime.now(UTC)
        if any(left.values()):
            await self._users.scanned(row, None, _AGAIN)
        elif row.clean_at is None or now - row.clean_at < timedelta(seconds=_QUIET):
            await self._users.scanned(row, row.clean_at or now, _QUIET)
        else:
            kept = {name: of.kept for name, of in data.items() if of.kept}
            await self._users.complete(await self._users.one(row.tenant, row.id), left, kept)
            log.info("erasure %s is complete", row.id)

    async def sweep(self) -> bool:
        """Delete a bounded part of what one tenant does not keep any longer; whether one was due. Raises `ServiceError`."""
        found = await self._users.claim_retention()
        if found is None:
            return False
        tenant, days = found
        removed, done = Counter[str](), True
        for what, kept in days.items():
            before = datetime.now(UTC) - timedelta(days=kept)
            part = await ask(
                self._bus, _sweeper(tenant), AGED_DROP[OWNER_OF_AGED[Aged(what)]], DropAged(what=Aged(what), before=before)
            )
            removed.update(part.removed)
            done = done and part.done
        await self._users.swept(tenant, removed, done=done)
        for name, count in removed.items():
            self._bus.tracing.metrics.count(SWEPT, name, by=count)
        if removed:
            log.info("retention removed %s", ", ".join(f"{count} {name}" for name, count in sorted(removed.items())))
        return True


def held_counts(data: Mapping[str, UserData]) -> Counts:
    """What the services hold; one that holds nothing is named with nothing."""
    return {name: dict(of.held) for name, of in data.items()}


class UserShown(BaseModel):
    """A user of the tenant."""

    user: str
    """The user's name."""
    roles: tuple[Role, ...] = ()
    """The roles of their keys that are good; empty where they have none, and come by a program or an identity provider."""
    keys: int = 0
    """Their keys that are good."""
    conversations: int = 0
    """Their conversations."""
    last_seen: datetime | None = None
    """When they last talked to an agent or changed something, or something was refused to them; absent where never."""


class UserList(BaseModel):
    """Users of the tenant, by name."""

    users: tuple[UserShown, ...]
    """Everybody who has a key that is good, or a conversation."""
    next: str | None = None
    """What to give as `after` for the page behind; absent on the last one."""


def merge_users(holders: Sequence[UserShown], seen: Sequence[SeenUser], limit: int) -> UserList:
    """The first users of two lists by name, of each of which one more than that is there."""
    known = {one.user: one for one in holders}
    for one in seen:
        user = known.get(one.user, UserShown(user=one.user))
        known[one.user] = user.model_copy(update={"conversations": one.conversations, "last_seen": one.last_seen})
    names = sorted(known)
    shown = tuple(known[name] for name in names[:limit])
    return UserList(users=shown, next=shown[-1].user if len(names) > limit else None)


class RetentionGiven(Retention, defer_build=False):  # a body of a route: FastAPI wants it complete
    """For how many days to keep what; what is left out is kept for ever."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"conversations": 365, "traces": 30}]})


USERS, ERASURES, RETENTION, AUDIT = "/api/v1/users", "/api/v1/erasures", "/api/v1/retention", "/api/v1/audit"
UserName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=200,
        description="The user's name, or the program's own name for the user: 1 to 200 printable characters.",
        json_schema_extra={"format": "user-name"},
    ),
]
ErasureId = Annotated[str, Path(description="The erasure's id."), ID_FORM]


def users_router(authenticator: Authenticator, bus: Bus, users: PostgresUsers, keeper: Keeper, keyring: Keyring) -> APIRouter:
    """The routes. No other face has them: a program that speaks MCP, or an agent, erases nobody."""
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["users"])

    async def allowed(who: Principal, action: str, user: str | None = None) -> None:
        if who.administers or user == who.user:
            return
        error = Forbidden("only an administrator may do this" if user is None else "users may do this for themselves alone")
        await audit_refusal(bus, who, action, {"user": user} if user is not None else {}, error)
        raise error

    @routes.get(USERS, responses=route_responses(UserList))
    async def list_users(
        who: Caller,
        text: Annotated[str, Query(max_length=200, description="Only users whose name holds this.")] = "",
        after: Annotated[str, Query(max_length=200, description="Only users behind this one: `next` of the page before.")] = "",
        limit: Annotated[int, Query(ge=1, le=200, description="Users at most.")] = 50,
    ) -> Response:
        """List the users of the tenant.

        Everybody who has a key that is good, or a conversation: their roles, and when they were last seen. For administrators.
        """
        await allowed(who, "user.list")
        holders = await users.holders(who.tenant, after, text, limit + 1)
        also = tuple(one.user for one in holders)
        seen = await ask(bus, who, USER_LIST, ListUsers(after=after, text=text, also=also, limit=limit + 1))
        return json_response(merge_users(holders, seen.users, limit))

    @routes.delete(
        USERS + "/{user_id}",
        status_code=202,
        responses=route_responses(Erasure, 202) | {200: route_responses(UserPreview)[200]} | refusals(409),
    )
    async def erase_user(
        user_id: UserName,
        who: Caller,
        dry_run: Annotated[bool, Query(description="Only tell what would be erased, and erase nothing.")] = False,
    ) -> Response:
        """Erase a user.

        All that every service holds of them in the tenant: by an administrator, or by the user. Their keys open nothing any
        more when this returns, and the erasure goes on after that whatever is restarted. A second time, while it goes on,
        answers with the same erasure. With `dry_run` the answer is a preview, a 200, and nothing is erased.
        """
        user = name_user(user_id)
        await allowed(who, "user.erase", user)
        if dry_run:
            data = await keeper.data(Principal(tenant=who.tenant, user=user))
            kept = {name: of.kept for name, of in data.items() if of.kept}
            return json_response(UserPreview(user=user, held=held_counts(data), kept=kept))
        row, keys = await users.begin(who, user)
        for key in keys:
            keyring.forget(key)
        keeper.wake.set()
        return json_response(_erasure(row), 202, {"Location": f"{ERASURES}/{row.id}"})

    @routes.get(ERASURES, responses=route_responses(ErasureList))
    async def list_erasures(
        who: Caller, limit: Annotated[int, Query(ge=1, le=200, description="Erasures at most.")] = 50
    ) -> Response:
        """List erasures of users.

        Those of the tenant, the newest first. For administrators.
        """
        await allowed(who, "user.erasures")
        return json_response(ErasureList(erasures=tuple(map(_erasure, await users.newest(who.tenant, limit)))))

    @routes.get(ERASURES + "/{id}", responses=route_responses(Erasure))
    async def get_erasure(id: ErasureId, who: Caller) -> Response:
        """See how far the erasure of a user is.

        Once it is complete, this is its proof. For administrators, and for the user.
        """
        row = await users.one(who.tenant, id)
        if not who.administers and row.user != who.user:
            raise NotFound("there is no such erasure")
        return json_response(_erasure(row))

    @routes.get(RETENTION, responses=route_responses(Retention))
    async def get_retention(who: Caller) -> Response:
        """See for how long the tenant keeps what.

        In days; what is absent is kept for ever. For administrators.
        """
        await allowed(who, "retention.get")
        return json_response(await users.retention(who.tenant))

    @routes.put(RETENTION, responses=route_responses(Retention))
    async def put_retention(given: RetentionGiven, who: Caller) -> Response:
        """Set for how long the tenant keeps what.

        In days; what is left out is kept for ever. What is older is deleted in the background from now on, for good. For
        administrators.
        """
        await allowed(who, "retention.set")
        await users.keep(who, given)
        return json_response(given)

    @routes.get(AUDIT, responses=route_responses(AuditPage))
    async def list_audit(
        who: Caller,
        user: Annotated[str | None, Query(max_length=200, description="Only what was done for this user.")] = None,
        action: Annotated[str | None, Query(max_length=200, description="Only actions that begin so, such as `keys.`.")] = None,
        outcome: Annotated[Literal["done", "refused"] | None, Query(description="Only entries with this outcome.")] = None,
        text: Annotated[
            str | None, Query(max_length=200, description="Only entries that hold this anywhere, in letters of any case.")
        ] = None,
        since: Annotated[AwareDatetime | None, Query(description="Only entries from then or later.")] = None,
        until: Annotated[AwareDatetime | None, Query(description="Only entries from before that.")] = None,
        before: Annotated[
            int | None, Query(ge=1, lt=2**63, description="Only entries behind this one: `next` of the page before.")
        ] = None,
        limit: Annotated[int, Query(ge=1, le=200, description="Entries at most.")] = 50,
    ) -> Response:
        """List the audit trail.

        Who changed what in the tenant, and what was refused to whom, newest first. A page with a `text` looks through 10,000
        entries at most, and `next` goes on behind them. For administrators.
        """
        await allowed(who, "audit.list")
        wanted = ListAudit(
            who=user, action=action, outcome=outcome, text=text, since=since, until=until, before=before, limit=limit
        )
        return json_response(await ask(bus, who, AUDIT_LIST, wanted))

    return routes


def _erasure(row: ErasureRow) -> Erasure:
    return Erasure(
        erasure_id=row.id,
        user=row.user,
        state=DeletionState.COMPLETE if row.completed_at else DeletionState.PENDING,
        requested_by=row.requested_by,
        requested_at=row.requested_at,
        completed_at=row.completed_at,
        before=row.before,
        after=row.after,
        kept=row.kept,
        digest=row.digest,
    )
