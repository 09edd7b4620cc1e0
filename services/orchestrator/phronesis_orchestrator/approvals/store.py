"""Approvals in Postgres, turns that wait for them, those that ran out, consents that cover later calls, and policies.

Turns' rows are locked first.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg

from phronesis_bus import Call, audit_entry
from phronesis_contracts import BadRequest, NotFound, Principal, labels_for_row
from phronesis_contracts.approvals import (
    POLICY_SET,
    ActionPolicy,
    AnswerApproval,
    Approval,
    ApprovalAnswered,
    ApprovalExpired,
    ApprovalRef,
    Approvals,
    ApprovalScope,
    ApprovalStatus,
    Decision,
    Grant,
    GrantRef,
    Grants,
    ListApprovals,
    ListGrants,
    ListPolicyVersions,
    PolicyChanged,
    PolicySet,
    PolicyVersion,
    PolicyVersions,
    SetActionPolicy,
    UnknownGrant,
)
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.origins import OriginKind
from phronesis_contracts.service import AUDITED
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news, write_once

from ..turns.turn import Claim, LostClaim, parse_uuid
from .policy import LEFT, ApprovalAnswer, ApprovalRequest

SERVICE = "orchestrator"
# The turn expires, at the latest, when the approval has run out and it has used what it has left from here on.
_WAIT = """
WITH mine AS (
    UPDATE turns SET status = 'waiting', lease_until = NULL, worker = NULL, idle_claims = 0, approval_id = $3,
        expires_at = now() + $4::interval + greatest(expires_at - now(), $5::interval)
    WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > now()
    RETURNING id, tenant, user_id, conversation_id, agent
)
INSERT INTO approvals (id, tenant, user_id, turn_id, conversation_id, agent, expires_at,
                       step, tool, action, arguments, digest, risk, irreversible, reason, effect, because, host, grantable)
SELECT $3, tenant, user_id, id, conversation_id, agent, now() + $4::interval,
       $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17 FROM mine
RETURNING true
"""
_OF_CALLER = "id = $1 AND tenant = $2 AND ($3 OR user_id = $4)"
_ANSWER = f"""
UPDATE approvals SET status = $5, answered_at = now(), answered_by = $6, note = $7, scope = $8
WHERE {_OF_CALLER} AND status = 'pending' AND expires_at > now() RETURNING *
"""  # noqa: S608
# Its old place was given up: where others were accepted behind it, it goes on behind them. The conversation is locked either
# way: one that is being accepted is waited for, and cannot be claimed beside it.
RESUME = """
WITH place AS (
    UPDATE conversations SET next_turn = next_turn + (next_turn > turns.sequence + 1)::int,
        moved = moved + (next_turn > turns.sequence + 1)::int
    FROM turns
    WHERE turns.id = $1 AND turns.status = 'waiting' AND conversations.id = turns.conversation_id
    RETURNING conversations.next_turn - 1 AS sequence
)
UPDATE turns SET status = 'queued', expires_at = now() + (expires_at - $2::timestamptz),
    sequence = coalesce((SELECT sequence FROM place), sequence)
WHERE id = $1 AND status = 'waiting'
"""
# Turns first, as everywhere; one that somebody else holds at the moment is answered, cancelled or deleted.
_DUE = """
SELECT turns.id FROM turns JOIN approvals ON approvals.turn_id = turns.id
WHERE approvals.status = 'pending' AND approvals.expires_at <= now() AND turns.status = 'waiting'
ORDER BY approvals.expires_at LIMIT $1 FOR UPDATE OF turns SKIP LOCKED
"""
# Looked at once more under the lock.
_EXPIRE = """
UPDATE approvals SET status = 'expired' WHERE turn_id = ANY($1::uuid[]) AND status = 'pending' AND expires_at <= now()
RETURNING id, turn_id, conversation_id, tool, tenant, expires_at
"""
_PRINCIPAL = "SELECT principal FROM turns WHERE id = $1"
_GRANT = """
INSERT INTO approval_grants (id, tenant, user_id, conversation_id, approval_id, tool, effect, kinds, host, created_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""
# No consent covers what depends on a kind of texts, or names a host, that was not before the person who gave it.
_GRANTED = """
SELECT true FROM approval_grants WHERE tenant = $1 AND user_id = $2 AND tool = $3 AND revoked_at IS NULL
    AND (conversation_id IS NULL OR conversation_id = $4) AND $5::text[] <@ kinds AND host = $6 LIMIT 1
"""
_GRANTS = """
SELECT * FROM approval_grants WHERE tenant = $1 AND ($2 OR user_id = $3) AND ($4 OR revoked_at IS NULL)
ORDER BY created_at DESC, id LIMIT $5
"""
_REVOKE = f"""
UPDATE approval_grants SET revoked_at = coalesce(revoked_at, now()), revoked_by = coalesce(revoked_by, $4)
WHERE {_OF_CALLER} RETURNING *, revoked_at = now() AS fresh
"""  # noqa: S608
_ONCE_ALONE = "this call can be allowed once alone: it is irreversible, of high risk, against a rule, or asked for its risk"
_STATUS = {Decision.APPROVE: ApprovalStatus.GRANTED, Decision.REFUSE: ApprovalStatus.REFUSED}


class PostgresApprovals:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def wait(self, claim: Claim, asked: ApprovalRequest) -> None:
        verdict, tenant = asked.verdict, claim.who.tenant
        async with self._database.transaction(tenant) as connection:
            waits = await connection.fetchval(
                _WAIT,
                UUID(claim.turn_id),
                claim.fence,
                UUID(asked.approval_id),
                timedelta(seconds=asked.seconds),
                timedelta(seconds=LEFT),
                asked.step,
                verdict.tool,
                verdict.action,
                asked.arguments,
                asked.digest,
                verdict.risk.name.lower(),
                verdict.irreversible,
                verdict.reason,
                asked.effect,
                labels_for_row(asked.because),
                asked.host,
                asked.grantable,
            )
            if not waits:
                raise LostClaim(claim.turn_id)
            details = {"approval_id": asked.approval_id, "turn_id": claim.turn_id, "tool": verdict.tool}
            await _audit(connection, tenant, audit_entry(claim.who, "approval.ask", details))

    async def answered(self, claim: Claim, approval_id: str) -> ApprovalAnswer | None:
        async with self._database.connection(claim.who.tenant) as connection:
            row = await connection.fetchrow(
                "SELECT status, digest, note FROM approvals WHERE id = $1 AND tenant = $2 AND turn_id = $3",
                UUID(approval_id),
                claim.who.tenant,
                UUID(claim.turn_id),
            )
        return None if row is None else ApprovalAnswer(ApprovalStatus(row["status"]), row["digest"], row["note"])

    async def granted(self, claim: Claim, tool: str, kinds: frozenset[OriginKind], host: str) -> bool:
        if not kinds:
            return False
        caller, conversation = (claim.who.tenant, claim.who.user, tool), UUID(claim.conversation_id)
        async with self._database.connection(claim.who.tenant) as connection:
            return bool(await connection.fetchval(_GRANTED, *caller, conversation, sorted(kinds), host))

    async def record(self, claim: Claim, entry: Audited) -> None:
        async with self._database.transaction(claim.who.tenant) as connection:
            await _audit(connection, claim.who.tenant, entry)

    async def approval(self, who: Principal, ref: ApprovalRef) -> Approval:
        """An approval of the caller, or for an admin, of the tenant. Raises `NotFound`."""
        async with self._database.connection(who.tenant) as connection:
            row = await _find_approval(connection, who, parse_uuid(ref.approval_id, "approval"))
        return _approval_from_row(row)

    async def approvals(self, who: Principal, query: ListApprovals) -> Approvals:
        """The same as a list, newest first."""
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(
                "SELECT * FROM approvals WHERE tenant = $1 AND ($2 OR user_id = $3) AND ($4::text IS NULL OR status = $4) "
                "ORDER BY created_at DESC, id LIMIT $5",
                who.tenant,
                who.administers,
                who.user,
                query.status,
                query.limit,
            )
        return Approvals(approvals=tuple(map(_approval_from_row, rows)))

    async def answer(self, who: Principal, answer: AnswerApproval) -> Approval:
        """Answer once, and put the turn back into the queue; a repeat of the same answer finds what it did.

        Raises:
            NotFound: there is no such approval of the caller.
            ApprovalAnswered: it has another answer, or ran out.
            BadRequest: the scope is one that this call cannot be allowed for.
        """
        id, status = parse_uuid(answer.approval_id, "approval"), _STATUS[answer.decision]
        scope = answer.scope if answer.decision is Decision.APPROVE else ApprovalScope.ONCE
        async with self._database.transaction(who.tenant) as connection:
            asked = await _find_approval(connection, who, id)
            # Answers, the sweep, a cancellation and a deletion come one after the other by the turn's row.
            await connection.execute("SELECT FROM turns WHERE id = $1 FOR UPDATE", asked["turn_id"])
            if scope is not ApprovalScope.ONCE and not asked["grantable"]:
                raise BadRequest(_ONCE_ALONE, field="scope")
            row = await connection.fetchrow(_ANSWER, *_read_caller(who, id), status, who.user, answer.note, scope)
            if row is None:
                return _repeat_answer(await _find_approval(connection, who, id), who, status, scope)
            await connection.execute(RESUME, row["turn_id"], row["expires_at"])
            details = {
                **{"approval_id": str(id), "turn_id": str(row["turn_id"]), "tool": row["tool"]},
                **{"decision": answer.decision, "scope": scope},
            }
            if scope is not ApprovalScope.ONCE:
                details["grant_id"] = await _write_grant(connection, row, scope, who)
            await _audit(connection, who.tenant, audit_entry(who, "approval.answer", details))
        return _approval_from_row(row)

    async def grants(self, who: Principal, query: ListGrants) -> Grants:
        """The caller's grants, or for an admin, those of the tenant; newest first."""
        async with self._database.connection(who.tenant) as connection:
            caller = (who.tenant, who.administers, who.user)
            rows = await connection.fetch(_GRANTS, *caller, query.revoked, query.limit)
        return Grants(grants=tuple(map(_grant_from_row, rows)))

    async def revoke(self, who: Principal, ref: GrantRef) -> Grant:
        """Take a grant back; what it let through is done. A repeat finds what the first did. Raises `UnknownGrant`."""
        id = _parse_grant(ref.grant_id)
        async with self._database.transaction(who.tenant) as connection:
            row = await connection.fetchrow(_REVOKE, *_read_caller(who, id))
            if row is None:
                raise UnknownGrant("no such grant")
            if row["fresh"]:
                await _audit(
                    connection,
                    who.tenant,
                    audit_entry(who, "approval_grant.revoke", {"grant_id": str(id), "tool": row["tool"]}),
                )
        return _grant_from_row(row)

    async def expire(self, limit: int) -> int:
        """Put up to `limit` turns whose approvals ran out back into the queue, to go on without the call; how many that were.

        Each leaves an entry in the audit trail.
        """
        async with self._database.transaction(EVERY_TENANT) as connection:
            due = [row["id"] for row in await connection.fetch(_DUE, limit)]
            rows = await connection.fetch(_EXPIRE, due) if due else []
            # Two copies that look at once take the conversations in one order.
            for row in sorted(rows, key=lambda row: str(row["conversation_id"])):
                await connection.execute(RESUME, row["turn_id"], row["expires_at"])
                who = Principal.model_validate(await connection.fetchval(_PRINCIPAL, row["turn_id"]))
                details = {"approval_id": str(row["id"]), "turn_id": str(row["turn_id"]), "tool": row["tool"]}
                entry = audit_entry(who, "approval.expire", details, code=ApprovalExpired.code)
                await _audit(connection, row["tenant"], entry)
        return len(rows)


def _read_caller(who: Principal, id: UUID) -> tuple[UUID, str, bool, str]:
    return id, who.tenant, who.administers, who.user


async def _find_approval(connection: Connection, who: Principal, id: UUID) -> asyncpg.Record:
    row = await connection.fetchrow(f"SELECT * FROM approvals WHERE {_OF_CALLER}", *_read_caller(who, id))  # noqa: S608
    if row is None:
        raise NotFound("no such approval")
    return row


def _repeat_answer(row: asyncpg.Record, who: Principal, status: ApprovalStatus, scope: ApprovalScope) -> Approval:
    if (row["status"], row["answered_by"], row["scope"]) == (status, who.user, scope):
        return _approval_from_row(row)
    over = ApprovalStatus.EXPIRED if row["status"] == ApprovalStatus.PENDING else row["status"]
    given = f" for {row['scope']}" if over == ApprovalStatus.GRANTED else ""
    raise ApprovalAnswered(f"the approval is {over}{given}")


def _approval_from_row(row: asyncpg.Record) -> Approval:
    named = {name: row[name] for name in Approval.model_fields if name in row}
    ids = {name: str(row[name]) for name in ("turn_id", "conversation_id")}
    scopes = tuple(ApprovalScope) if row["grantable"] else (ApprovalScope.ONCE,)
    more = {"approval_id": str(row["id"]), "user": row["user_id"], "arguments_sha256": row["digest"], "scopes": scopes}
    return Approval.model_validate({**named, **ids, **more})


async def _write_grant(connection: Connection, row: asyncpg.Record, scope: ApprovalScope, who: Principal) -> str:
    id = uuid4()
    conversation = row["conversation_id"] if scope is ApprovalScope.CONVERSATION else None
    kinds = sorted({label["kind"] for label in row["because"]})
    call = (row["tool"], row["effect"], kinds, row["host"])
    await connection.execute(_GRANT, id, row["tenant"], row["user_id"], conversation, row["id"], *call, who.user)
    return str(id)


def _grant_from_row(row: asyncpg.Record) -> Grant:
    named = {name: row[name] for name in Grant.model_fields if name in row}
    ids = {"grant_id": str(row["id"]), "approval_id": str(row["approval_id"]), "user": row["user_id"]}
    conversation = str(row["conversation_id"]) if row["conversation_id"] else None
    return Grant.model_validate({**named, **ids, "conversation_id": conversation})


def _parse_grant(id: str) -> UUID:
    try:
        return UUID(id)
    except ValueError as error:
        raise UnknownGrant("no such grant") from error


async def _audit(connection: Connection, tenant: str, entry: Audited) -> None:
    await write_news(connection, SERVICE, tenant, AUDITED[SERVICE], entry)


VERSIONS = 1_000
"""Versions that are kept of one tenant's policy."""
_POLICY_IN_FORCE = "SELECT * FROM action_policies WHERE tenant = $1 ORDER BY version DESC LIMIT 1"
_POLICY = "SELECT * FROM action_policies WHERE tenant = $1 AND version = $2"
_POLICIES = """
SELECT * FROM action_policies WHERE tenant = $1 AND ($2::int IS NULL OR version < $2) ORDER BY version DESC LIMIT $3
"""
# Of two at once the second waits for the first one's row, and then finds the version taken.
_SET_POLICY = """
INSERT INTO action_policies (tenant, version, rules, egress, approval_seconds, restores, changed_by)
SELECT $1, $2 + 1, $3, $4, $5, $6, $7
WHERE $2 = (SELECT coalesce(max(version), 0) FROM action_policies WHERE tenant = $1)
ON CONFLICT DO NOTHING RETURNING *
"""
_PRUNE_POLICIES = "DELETE FROM action_policies WHERE tenant = $1 AND version <= $2"


class PostgresPolicies:
    """The table `action_policies`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def in_force(self, tenant: str) -> PolicyVersion:
        async with self._database.connection(tenant) as connection:
            return _version_from_row(await connection.fetchrow(_POLICY_IN_FORCE, tenant))

    async def version(self, who: Principal, version: int) -> PolicyVersion:
        """A version, also an earlier one. Raises `NotFound`."""
        async with self._database.connection(who.tenant) as connection:
            return await _read_version(connection, who.tenant, version)

    async def versions(self, who: Principal, page: ListPolicyVersions) -> PolicyVersions:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_POLICIES, who.tenant, page.before, page.limit)
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
            row = await connection.fetchrow(_SET_POLICY, who.tenant, wanted.replaces, *values)
            if row is None:
                raise PolicyChanged(f"version {wanted.replaces} of the policy is not in force any more", field="replaces")
            await connection.execute(_PRUNE_POLICIES, who.tenant, row["version"] - VERSIONS)
            made = _version_from_row(row)
            details = made.policy.model_dump(mode="json") | {"restores": wanted.restores}
            await write_news(connection, SERVICE, who.tenant, AUDITED[SERVICE], audit_entry(who, "action_policy.set", details))
            await write_news(connection, SERVICE, who.tenant, POLICY_SET, PolicySet(version=row["version"]))
            return made

        return await write_once(self._database, call, wanted, PolicyVersion, write)


async def _read_version(connection: Connection, tenant: str, version: int) -> PolicyVersion:
    row = await connection.fetchrow(_POLICY, tenant, version)
    if row is None and version:
        raise NotFound(f"there is no version {version} of the policy")
    return _version_from_row(row)


def _version_from_row(row: asyncpg.Record | None) -> PolicyVersion:
    if row is None:
        return PolicyVersion(policy=ActionPolicy())
    policy = ActionPolicy.model_validate({name: row[name] for name in ActionPolicy.model_fields})
    return PolicyVersion(policy=policy, changed_at=row["changed_at"], changed_by=row["changed_by"], restores=row["restores"])
