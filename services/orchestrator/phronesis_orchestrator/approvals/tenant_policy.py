"""The tenant's policy of actions: its versions in Postgres, what turns read of it, and what administrators do with it."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import asyncpg

from phronesis_bus import Bus, Call, News, audit_entry, follow, serve
from phronesis_contracts import BadRequest, Forbidden, NotFound, Principal
from phronesis_contracts.approvals import (
    ACTION_POLICY_GET,
    ACTION_POLICY_LIST,
    ACTION_POLICY_SET,
    POLICY_SET,
    ActionPolicy,
    ActionRule,
    GetActionPolicy,
    ListPolicyVersions,
    PolicyChanged,
    PolicySet,
    PolicyVersion,
    PolicyVersions,
    SetActionPolicy,
)
from phronesis_contracts.service import AUDITED
from phronesis_contracts.tools import Effect
from phronesis_postgres import Connection, Database, write_news, write_once

from .egress import check_entry

SERVICE = "orchestrator"
VERSIONS = 1_000
"""Versions that are kept of one tenant's policy."""
_IN_FORCE = "SELECT * FROM action_policies WHERE tenant = $1 ORDER BY version DESC LIMIT 1"
_ONE = "SELECT * FROM action_policies WHERE tenant = $1 AND version = $2"
_PAGE = """
SELECT * FROM action_policies WHERE tenant = $1 AND ($2::int IS NULL OR version < $2) ORDER BY version DESC LIMIT $3
"""
# Of two at once the second waits for the first one's row, and then finds the version taken.
_SET = """
INSERT INTO action_policies (tenant, version, rules, egress, approval_seconds, restores, changed_by)
SELECT $1, $2 + 1, $3, $4, $5, $6, $7
WHERE $2 = (SELECT coalesce(max(version), 0) FROM action_policies WHERE tenant = $1)
ON CONFLICT DO NOTHING RETURNING *
"""
_PRUNE = "DELETE FROM action_policies WHERE tenant = $1 AND version <= $2"


class PostgresPolicies:
    """The table `action_policies`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def in_force(self, tenant: str) -> PolicyVersion:
        async with self._database.connection(tenant) as connection:
            return _version_from_row(await connection.fetchrow(_IN_FORCE, tenant))

    async def version(self, who: Principal, version: int) -> PolicyVersion:
        """A version, also an earlier one. Raises `NotFound`."""
        async with self._database.connection(who.tenant) as connection:
            return await _read_version(connection, who.tenant, version)

    async def versions(self, who: Principal, page: ListPolicyVersions) -> PolicyVersions:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_PAGE, who.tenant, page.before, page.limit)
        return PolicyVersions(versions=tuple(map(_version_from_row, rows)))

    async def set(self, call: Call, wanted: SetActionPolicy) -> PolicyVersion:
        """Put a policy in the place of the one in force.

        Raises:
            PolicyChanged: another version is in force.
            NotFound: there is no version to go back to.
        """
        who = call.who

        async def write(connection: Connection) -> PolicyVersion:
            stated: SetActionPolicy | ActionPolicy = wanted
            if wanted.restores is not None:
                stated = (await _read_version(connection, who.tenant, wanted.restores)).policy
            rules = [rule.model_dump(mode="json") for rule in stated.rules]
            values = (rules, list(stated.egress), stated.approval_seconds, wanted.restores, who.user)
            row = await connection.fetchrow(_SET, who.tenant, wanted.replaces, *values)
            if row is None:
                raise PolicyChanged(f"version {wanted.replaces} of the policy is not in force any more", field="replaces")
            await connection.execute(_PRUNE, who.tenant, row["version"] - VERSIONS)
            made = _version_from_row(row)
            details = made.policy.model_dump(mode="json") | {"restores": wanted.restores}
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], audit_entry(who, "action_policy.set", details))
            await write_news(connection, SERVICE, who.tenant, POLICY_SET, PolicySet(version=row["version"]))
            return made

        return await write_once(self._database, call, wanted, PolicyVersion, write)


async def _read_version(connection: Connection, tenant: str, version: int) -> PolicyVersion:
    row = await connection.fetchrow(_ONE, tenant, version)
    if row is None and version:
        raise NotFound(f"there is no version {version} of the policy")
    return _version_from_row(row)


def _version_from_row(row: asyncpg.Record | None) -> PolicyVersion:
    if row is None:
        return PolicyVersion(policy=ActionPolicy())
    policy = ActionPolicy.model_validate({name: row[name] for name in ActionPolicy.model_fields})
    return PolicyVersion(policy=policy, changed_at=row["changed_at"], changed_by=row["changed_by"], restores=row["restores"])


log = logging.getLogger(__name__)

FRESH = 5.0
"""Seconds for which a policy that was read stands, should nobody say that it was set."""
_TENANTS = 2_000
"""Tenants whose policies are cached."""


class PolicyCache:
    """The policies that turns run under. What is set on any copy of the service is read anew on all.

    Args:
        read: asks the store.
        clock: seconds that only grow.
    """

    def __init__(self, read: Callable[[str], Awaitable[PolicyVersion]], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._cached: OrderedDict[str, tuple[float, ActionPolicy]] = OrderedDict()
        self._changes = 0

    async def load(self, tenant: str) -> ActionPolicy:
        """A tenant's policy; where it cannot be read, the one that the system comes with, which lets nothing out unasked."""
        cached = self._cached.get(tenant)
        if cached is not None and self._clock() - cached[0] < FRESH:
            return cached[1]
        began, changes = self._clock(), self._changes
        try:
            policy = (await self._read(tenant)).policy
        except Exception:
            # Whatever is wrong with it, no text may gain by it.
            log.exception("the policy of a tenant could not be read; the default holds")
            self._cached.pop(tenant, None)
            return ActionPolicy()
        if changes == self._changes:  # else it may have been read before what was set meanwhile
            self._cached[tenant] = (began, policy)
            self._cached.move_to_end(tenant)
            if len(self._cached) > _TENANTS:
                self._cached.popitem(last=False)
        return policy

    def forget(self, tenant: str) -> None:
        """Read a tenant's policy anew from now on."""
        self._changes += 1
        self._cached.pop(tenant, None)


class PolicyHandlers:
    """The handlers. `wake`: called when a policy was set, to wake the relay of news."""

    def __init__(self, policies: PostgresPolicies, cache: PolicyCache, wake: Callable[[], None]) -> None:
        self._policies, self._cache, self._wake = policies, cache, wake

    async def get(self, call: Call, request: GetActionPolicy) -> PolicyVersion:
        """The tenant's policy, which everybody in it may know; earlier versions are for administrators.

        Raises:
            Forbidden: an outside system, or somebody who is no administrator about an earlier version.
            NotFound: there is no such version.
        """
        _refuse_outsiders(call)
        if request.version is None:
            return await self._policies.in_force(call.who.tenant)
        _need_administrator(call)
        return await self._policies.version(call.who, request.version)

    async def list(self, call: Call, request: ListPolicyVersions) -> PolicyVersions:
        """The versions, newest first. Raises `Forbidden`: it is for administrators."""
        _refuse_outsiders(call)
        _need_administrator(call)
        return await self._policies.versions(call.who, request)

    async def set(self, call: Call, request: SetActionPolicy) -> PolicyVersion:
        """Set the policy; it holds here at once, and in other processes as soon as they hear of it.

        Raises:
            Forbidden: it is for administrators.
            BadRequest: it contradicts itself, or an entry names no host.
            PolicyChanged: another version is in force than the one to replace.
            NotFound: there is no version to go back to.
        """
        _refuse_outsiders(call)
        _need_administrator(call)
        made = await self._policies.set(call, _checked(request))
        self._cache.forget(call.who.tenant)
        self._wake()
        return made

    async def on_policy_set(self, news: News, event: PolicySet) -> None:
        self._cache.forget(news.tenant)


def _refuse_outsiders(call: Call) -> None:
    if call.who.inbox is not None:
        raise Forbidden("what holds agents back is a matter of people, and of no system on the bus")


def _need_administrator(call: Call) -> None:
    if not call.who.administers:
        raise Forbidden("this is for administrators")


def _checked(wanted: SetActionPolicy) -> SetActionPolicy:
    if wanted.restores is not None:
        if wanted.rules or wanted.egress:
            raise BadRequest("nothing is stated beside the version to go back to", field="restores")
        return wanted
    seen = dict[tuple[str, str], ActionRule]()
    for rule in wanted.rules:
        if rule.effect is Effect.READ:
            raise BadRequest("what only reads inside the tenant is free", field="rules")
        if seen.setdefault((rule.origin, rule.effect), rule) is not rule:
            raise BadRequest(f"there are two rules for {rule.origin} and {rule.effect}", field="rules")
    try:
        hosts = tuple(dict.fromkeys(map(check_entry, wanted.egress)))
    except ValueError as error:
        raise BadRequest(str(error), field="egress") from error
    return wanted.model_copy(update={"egress": hosts})


async def serve_policies(bus: Bus, policies: PostgresPolicies, cache: PolicyCache, wake: Callable[[], None]) -> None:
    """Wire them to the bus, and to what other copies of the service set."""
    handlers = PolicyHandlers(policies, cache, wake)
    await serve(bus, ACTION_POLICY_GET, handlers.get)
    await serve(bus, ACTION_POLICY_LIST, handlers.list)
    await serve(bus, ACTION_POLICY_SET, handlers.set)
    await follow(bus, POLICY_SET, handlers.on_policy_set, every_copy=True)
