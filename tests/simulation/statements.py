"""What each statement of the turn core does, as the model of Postgres runs it.

A statement stands here with the first digits of its text's hash: whoever changes the SQL reads what it does here, and then
changes the digits.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast
from uuid import UUID

from phronesis_orchestrator.approvals import store as approvals
from phronesis_orchestrator.conversations import store as conversations
from phronesis_orchestrator.tasks import store as tasks
from phronesis_orchestrator.turns import store as turns
from phronesis_postgres import Database

from .postgres import OPEN, Pool, Records, Row, Server, Statement, Transaction, seconds

STATEMENTS: dict[str, Statement] = {}
Function = TypeVar("Function", bound=Callable[..., Any])


class Changed(Exception):
    """The text of a statement is not the one that the model was written for."""


def statement(sql: str, digest: str | None = None, *, look: Callable[..., Any] | None = None) -> Callable[[Function], Function]:
    """Say that a function does what `sql` does.

    Args:
        digest: the first digits of the text's SHA-256; not needed where the text stands here.
        look: reads the rows that the statement decides by, in a moment ahead of the function.
    """
    found = hashlib.sha256(sql.encode()).hexdigest()[:6]
    if digest is not None and found != digest:
        raise Changed(f"read the statement, bring its model up to date, and write {found!r} for {digest!r}:\n{sql}")

    def take(function: Function) -> Function:
        STATEMENTS[sql] = Statement(function, look)
        return function

    return take


def _is_free(row: Row, now: datetime) -> bool:
    return row["status"] in ("queued", "running") and (row["lease_until"] is None or row["lease_until"] < now)


def _is_mine(row: Row | None, fence: int, now: datetime) -> bool:
    """Whether the turn runs under this fence, and its lease has not run out."""
    return row is not None and row["fence"] == fence and row["status"] == "running" and row["lease_until"] > now


def model_database() -> Database:
    """The orchestrator's database on a model that answers at once, by the clock of this machine."""
    return open_database(Server(STATEMENTS, time.time), "tests")


def open_database(server: Server, owner: object) -> Database:
    """The service's own `Database`, on the model of a server in place of the driver's pool."""
    return Database(cast(Any, Pool(server, owner)), "orchestrator")


# Accepting.


@statement(turns._LOOK, "ac00fb")
def look_before_accepting(at: Transaction, id: UUID, tenant: str) -> Row:
    of_tenant = sum(1 for row in at.rows("turns") if row["tenant"] == tenant and row["status"] in OPEN)
    none = {"status": None, "conversation_id": None, "fingerprint": None, "erased": None}
    return {**(at.get("turns", id) or none), "open": of_tenant}


@statement(turns._PLACE_IN_NEW, "b63895")
def place_in_new(at: Transaction, id: UUID, tenant: str, user: str, agent: str) -> Row:
    at.lock("conversations", id)
    found = at.get("conversations", id)
    if found is not None:
        changed = at.update("conversations", (id,), next_turn=found["next_turn"] + 1)
        return {"sequence": changed["next_turn"] - 1, "agent": changed["agent"]}
    at.insert(
        "conversations",
        (id,),
        {
            **{"id": id, "tenant": tenant, "user_id": user, "agent": agent, "next_turn": 2, "next_message": 1, "moved": 0},
            **{"directive": "supportive_companion", "deleted_at": None, "summary": None, "focus": None},
            **{"created_at": at.now, "updated_at": at.now},
        },
    )
    return {"sequence": 1, "agent": agent}


@statement(turns._PLACE, "a0f494")
def place(at: Transaction, id: UUID, tenant: str, user: str) -> Row | None:
    found = at.get("conversations", id)
    if found is None or (found["tenant"], found["user_id"], found["deleted_at"]) != (tenant, user, None):
        return None
    at.lock("conversations", id)
    current = at.get("conversations", id)
    assert current is not None
    changed = at.update("conversations", (id,), next_turn=current["next_turn"] + 1, updated_at=at.now)
    return {"sequence": changed["next_turn"] - 1, "agent": changed["agent"]}


@statement(turns._INSERT, "a67302")
def insert_turn(
    at: Transaction,
    id: UUID,
    tenant: str,
    user: str,
    conversation: UUID,
    sequence: int,
    agent: str,
    request: Row,
    fingerprint: str,
    principal: Row,
    key: str | None,
    expiry: float,
    traceparent: str | None,
    correlation: str | None,
    retry_of: UUID | None,
    background: bool,
    worker: str | None,
    lease: float,
) -> Row:
    ahead = (
        row
        for row in at.rows("turns")
        if row["conversation_id"] == conversation and row["sequence"] < sequence and row["status"] in ("queued", "running")
    )
    mine = worker is not None and not _somebody_waits(at) and next(ahead, None) is None
    row = {
        **{"id": id, "tenant": tenant, "user_id": user, "conversation_id": conversation, "sequence": sequence},
        **{"agent": agent, "request": request, "fingerprint": fingerprint, "principal": principal},
        **{"key_id": key, "expires_at": at.now + seconds(expiry), "traceparent": traceparent, "correlation_id": correlation},
        **{"retry_of": retry_of, "background": background, "fence": int(mine), "attempts": int(mine)},
        **{"status": "running" if mine else "queued", "worker": worker if mine else None, "idle_claims": int(mine)},
        **{"lease_until": at.now + seconds(lease) if mine else None, "created_at": at.now, "ended_at": None, "reply": None},
        **{"problem": None, "erased": False},
        **{"approval_id": None, "labels": None, "learnt": False, "recalled": [], "wait": None, "waited_seconds": 0.0},
    }
    at.insert("turns", (id,), row, [("conversation_id,sequence", (conversation, sequence))])
    return {**row, "key_revoked": any(revoked["key_id"] == key for revoked in at.rows("revoked_keys"))}


def _somebody_waits(at: Transaction, *, tasks: bool = False) -> bool:
    """Whether a turn of anybody may be claimed that waits for a worker, or has lost its own; background tasks too, or not."""
    rows = replace(at, reach="*").rows("turns")
    return any(_is_free(row, at.now) for row in rows if tasks or not row["background"])


# Claiming.


def _since(row: Row) -> datetime:
    """The time by which an open turn has its place among those of its tenant."""
    since: datetime = row["created_at"] if row["wait"] is None else row["lease_until"]
    return since


def look_for_claims(
    at: Transaction, worker: str, limit: int, lease: float, tasks: int, away: list[str], few: str | None, most: int | None
) -> list[tuple[Any, ...]]:
    """The ids of what may be claimed, best first; where each stands is decided by what is committed now.

    The statement looks at the first of each user and tenant alone; here all are looked at.
    """
    heads: dict[UUID, Row] = {}
    running, here = Counter[tuple[str, bool]](), Counter[str]()
    of_users = Counter[tuple[str, bool, str]]()
    for row in at.rows("turns"):
        if row["status"] not in ("queued", "running"):
            continue
        head = heads.get(row["conversation_id"])
        if head is None or row["sequence"] < head["sequence"]:
            heads[row["conversation_id"]] = row
        if row["status"] == "running" and row["lease_until"] is not None and row["lease_until"] > at.now:
            running[row["tenant"], row["background"]] += 1
            of_users[row["tenant"], row["background"], row["user_id"]] += 1
            here[row["tenant"]] += row["worker"] == worker and not row["background"]
    free = defaultdict[tuple[str, bool], list[Row]](list)
    for row in heads.values():
        waits = row["wait"] is not None and row["wait"]["service"] in away and row["expires_at"] > at.now
        if (row["lease_until"] is None or row["lease_until"] < at.now) and not waits:
            free[row["tenant"], row["background"]].append(row)
    shared: list[tuple[bool, int, datetime, UUID]] = []
    for of, rows in free.items():
        placed: list[tuple[int, datetime, UUID]] = []
        for row in sorted(rows, key=_since):
            of_users[(*of, row["user_id"])] += 1
            placed.append((of_users[(*of, row["user_id"])], _since(row), row["id"]))
        placed.sort(key=lambda found: found[:2])
        numbered = list(enumerate(placed, 1))[: max(0, most - here[of[0]]) if most is not None and of == (few, False) else None]
        shared += [(of[1], number + running[of], since, id) for number, (_, since, id) in numbered]
    shared.sort(key=lambda found: found[:3])
    people = [found for found in shared if not found[0]]
    return people + [found for found in shared if found[0]][:tasks]


@statement(turns._ANYTHING_WAITS, "b777cd")
def look_whether_anything_waits(at: Transaction) -> Row:
    return {"exists": _somebody_waits(at, tasks=True)}


@statement(turns._BY_INDEX)
def plan_by_index(at: Transaction) -> None:
    """The model plans nothing."""


@statement(turns._CLAIM, "98ad68", look=look_for_claims)
def claim(
    at: Transaction,
    seen: list[tuple[Any, ...]],
    worker: str,
    limit: int,
    lease: float,
    tasks: int,
    away: list[str],
    few: str | None,
    most: int | None,
) -> list[Row]:
    claimed: list[Row] = []
    for *_, id in seen:
        if len(claimed) >= limit:
            break
        if at.is_locked("turns", id):
            continue
        row = at.get("turns", id)
        if row is None or not _is_free(row, at.now):
            continue
        wait = row["wait"]
        changed = at.update(
            "turns",
            (id,),
            status="running",
            worker=worker,
            fence=row["fence"] + 1,
            attempts=row["attempts"] + 1,
            idle_claims=row["idle_claims"] + 1,
            lease_until=at.now + seconds(lease),
            wait=None,
            waited_seconds=row["waited_seconds"] + (0.0 if wait is None else (at.now - wait["since"]).total_seconds()),
        )
        revoked = any(key["key_id"] == row["key_id"] for key in at.rows("revoked_keys"))
        claimed.append({**changed, "expired": row["expires_at"] <= at.now, "key_revoked": revoked, "wait": wait})
    return claimed


@statement(turns._RENEW, "c1e8bf")
def renew(at: Transaction, worker: str, ids: list[UUID], fences: list[int], lease: float) -> list[Row]:
    renewed = []
    for id, fence in zip(ids, fences, strict=True):
        row = at.get("turns", id)
        if row is None or (row["fence"], row["worker"], row["status"]) != (fence, worker, "running"):
            continue
        at.update("turns", (id,), lease_until=at.now + seconds(lease))
        renewed.append({"id": id})
    return renewed


@statement(turns._GIVE_BACK, "91813e")
def give_back(at: Transaction, id: UUID, fence: int, delay: float, less: int) -> None:
    row = at.get("turns", id)
    if row is not None and row["fence"] == fence and row["status"] == "running":
        until = at.now + seconds(delay) if delay > 0 else None
        at.update("turns", (id,), status="queued", worker=None, idle_claims=row["idle_claims"] - less, lease_until=until)


@statement(turns._PUT_BACK, "9bf25d")
def put_back(at: Transaction, id: UUID, fence: int, delay: float, wait: Row) -> Row | None:
    row = at.get("turns", id)
    if row is None or row["fence"] != fence or row["status"] != "running":
        return None
    at.update(
        "turns",
        (id,),
        status="queued",
        worker=None,
        idle_claims=max(row["idle_claims"] - 1, 0),
        lease_until=min(at.now + seconds(delay), row["expires_at"]),
        wait={**wait, "since": at.now},
    )
    return {"true": True}


# Ending.

_ENDED = {"lease_until": None, "worker": None}


@statement(turns._COMPLETE, "0abb33")
def complete(
    at: Transaction,
    id: UUID,
    fence: int,
    reply: Row,
    user_text: str,
    text: str,
    directive: str,
    reasoning: str,
    tenant: str,
    subject: str,
    body: bytes,
    headers: Row,
    recalled: list[str],
    focus: Row | None,
    says: bool,
    labels: Any,
    attached: list[str],
) -> Row | None:
    row = at.get("turns", id)
    if row is None or not _is_mine(row, fence, at.now):
        return None
    write_end(at, row, says=says, reply=reply, recalled=recalled, labels=labels)
    conversation = at.get("conversations", row["conversation_id"])
    if conversation is not None:
        at.lock("conversations", conversation["id"])
        conversation = at.get("conversations", conversation["id"])
        assert conversation is not None
        sequence = conversation["next_message"]
        at.update(
            "conversations",
            (conversation["id"],),
            next_message=sequence + (2 if says else 0),
            directive=directive,
            focus=focus if focus is not None else conversation["focus"],
            updated_at=at.now,
        )
        said = ((0, "user", user_text, attached), (1, "assistant", text, []))
        for more, role, words, names in said if says else ():
            message = {
                **{"conversation_id": conversation["id"], "seq": sequence + more, "turn_id": id, "role": role},
                **{"text": words, "attached": names, "tenant": tenant, "created_at": at.now},
            }
            at.insert("messages", (conversation["id"], sequence + more), message, [("turn_id,role", (id, role))])
        stance = {"turn_id": id, "directive": directive, "reasoning": reasoning, "tenant": tenant}
        at.insert("directives", (id,), stance)
    write_outbox(at, tenant, subject, body, headers)
    return at.get("turns", id)


def write_end(at: Transaction, row: Row, *, says: bool, **values: Any) -> None:
    at.update("turns", (row["id"],), status="completed", learnt=not says, ended_at=at.now, **values, **_ENDED)


@statement(turns._FAIL, "5442ea")
def fail(at: Transaction, id: UUID, fence: int, status: str, problem: Row, labels: Any) -> Row | None:
    row = at.get("turns", id)
    if row is None or not _is_mine(row, fence, at.now):
        return None
    return at.update("turns", (id,), status=str(status), problem=problem, labels=labels, ended_at=at.now, **_ENDED)


@statement(turns._CANCEL, "b879a2")
def cancel(at: Transaction, id: UUID, tenant: str, user: str) -> Row | None:
    row = _of_caller(at, id, tenant, user, erased=True)
    if row is None or row["status"] not in OPEN:
        return None
    return at.update("turns", (id,), status="cancelled", fence=row["fence"] + 1, ended_at=at.now, **_ENDED)


@statement(turns._WITHDRAW, "f54e0a")
def withdraw(at: Transaction, id: UUID) -> None:
    for row in at.rows("approvals"):
        if row["turn_id"] == id and row["status"] == "pending":
            at.update("approvals", (row["id"],), status="cancelled")


@statement(turns._STOP_WAITING, "54b641")
def stop_waiting(at: Transaction, id: UUID) -> None:
    """No turn of the model waits for anything but an approval."""


@statement(turns._PAUSE_SCHEDULES, "1034e5")
def pause_schedules(at: Transaction, key: str, why: Row) -> None:
    """The model has no schedules."""


@statement("INSERT INTO revoked_keys (key_id) VALUES ($1) ON CONFLICT DO NOTHING")
def revoke(at: Transaction, key: str) -> None:
    at.lock("revoked_keys", key)
    if at.get("revoked_keys", key) is None:
        at.insert("revoked_keys", (key,), {"key_id": key, "tenant": at.reach})


# Reading.


def _of_caller(at: Transaction, id: UUID, tenant: str, user: str, *, erased: bool = False) -> Row | None:
    row = at.get("turns", id)
    mine = row is not None and (row["tenant"], row["user_id"]) == (tenant, user) and (erased or not row["erased"])
    return row if mine else None


@statement("SELECT status FROM turns WHERE id = $1 AND tenant = $2 AND user_id = $3 AND NOT erased")
def read_status(at: Transaction, id: UUID, tenant: str, user: str) -> Row | None:
    row = _of_caller(at, id, tenant, user)
    return None if row is None else {"status": row["status"]}


@statement("SELECT * FROM turns WHERE id = $1 AND tenant = $2 AND user_id = $3 AND NOT erased")
@statement("SELECT status, conversation_id, request FROM turns WHERE id = $1 AND tenant = $2 AND user_id = $3 AND NOT erased")
def read_turn(at: Transaction, id: UUID, tenant: str, user: str) -> Row | None:
    return _of_caller(at, id, tenant, user)


@statement(turns._LIST, "5f98fa")
def list_turns(
    at: Transaction,
    tenant: str,
    user: str,
    conversation: UUID | None,
    status: str | None,
    agent: str | None,
    since: datetime | None,
    until: datetime | None,
    before: UUID | None,
    helpful: bool | None,
    limit: int,
) -> list[Row]:
    """The turns of a user; of the model's, only those of tasks have no text of their own."""

    def place(row: Row) -> tuple[datetime, int, UUID]:
        return row["created_at"], row["sequence"], row["id"]

    last = at.get("turns", before) if before else None
    if before and (last is None or (last["tenant"], last["user_id"]) != (tenant, user)):
        return []
    found = [
        row
        for row in at.rows("turns")
        if (row["tenant"], row["user_id"], row["erased"]) == (tenant, user, False)
        and conversation in (None, row["conversation_id"])
        and status in (None, row["status"])
        and agent in (None, row["agent"])
        and (since is None or row["created_at"] >= since)
        and (until is None or row["created_at"] < until)
        and (last is None or place(row) < place(last))
        and helpful in (None, row.get("helpful"))
    ]
    ordered = sorted(found, key=place, reverse=True)[:limit]
    return [{**row, "opening": row["request"]["text"][:240]} for row in ordered]


@statement("SELECT * FROM conversations WHERE id = $1 AND tenant = $2 AND user_id = $3 AND deleted_at IS NULL")
def read_conversation(at: Transaction, id: UUID, tenant: str, user: str) -> Row | None:
    row = at.get("conversations", id)
    return row if row is not None and (row["tenant"], row["user_id"], row["deleted_at"]) == (tenant, user, None) else None


@statement(conversations._MESSAGES, "bbbba2")
def read_messages(at: Transaction, id: UUID, before: int | None, limit: int) -> list[Row]:
    said = [row for row in at.rows("messages") if row["conversation_id"] == id and (before is None or row["seq"] < before)]
    return [{**row, **_typed(at, row)} for row in sorted(said, key=lambda row: -row["seq"])[:limit]]


def _typed(at: Transaction, message: Row) -> Row:
    turn = at.get("turns", message["turn_id"])
    return {"typed": turn["request"]["text"].strip() if turn else None, "media": turn["request"]["media"] if turn else None}


@statement(conversations._READ, "3b0cb8")
def read_recent(at: Transaction, id: UUID, window: int, aged: int, longest: int) -> list[Row]:
    """A conversation whose messages all fit into the window, which is as far as turns of the model go."""
    head = at.get("conversations", id)
    if head is None:
        return []
    of_all = {"directive": head["directive"], "summary": head["summary"], "focus": head["focus"], "labels": None}
    said = sorted((row for row in at.rows("messages") if row["conversation_id"] == id), key=lambda row: row["seq"])
    rows = [{**of_all, **row, **_typed(at, row), "part": "window", "text": row["text"][:longest]} for row in said[-window:]]
    return rows or [{**of_all, "part": None, "seq": None, "role": None, "text": None, "typed": None, "media": None}]


@statement("SELECT directive, reasoning FROM directives")
def read_stances(at: Transaction) -> list[Row]:
    return [Records(directive=row["directive"], reasoning=row["reasoning"]) for row in at.rows("directives")]


@statement(tasks._WAITED, "ecca9f")
def read_waited(at: Transaction, id: UUID) -> Row | None:
    row = at.get("turns", id)
    if row is None:
        return None
    asked = [of for of in at.rows("approvals") if of["turn_id"] == id and of["status"] != "pending"]
    waited = sum(((of["answered_at"] or of["expires_at"]) - of["created_at"]).total_seconds() for of in asked)
    return {"waited": row["waited_seconds"] + waited}


@statement("SELECT pg_sleep(0.2)")
def sleep(at: Transaction) -> None:
    time.sleep(0.2)


# The journal.


@statement(turns._INTEND, "a51e17")
def intend(at: Transaction, id: UUID, step: str, fence: int, intent: Row) -> Row | None:
    turn = at.get("turns", id)
    if turn is None or not _is_mine(turn, fence, at.now):
        return None
    at.lock("journal", id, step)
    found = at.get("journal", id, step)
    if found is None:
        row = {"turn_id": id, "step": step, "fence": fence, "intent": intent, "intents": 1, "result": None}
        at.insert("journal", (id, step), {**row, "tenant": turn["tenant"]})
        return {"result": None, "intents": 1}
    if found["fence"] > fence:
        return None
    return at.update("journal", (id, step), fence=fence, intents=found["intents"] + (found["result"] is None))


@statement(turns._KNOWN)
def read_result(at: Transaction, id: UUID, step: str) -> Row | None:
    return at.get("journal", id, step)


@statement(turns._RESULT, "2e4368")
def result(at: Transaction, id: UUID, step: str, fence: int, given: Row, intent: Row) -> Row | None:
    turn = at.get("turns", id)
    if turn is None or not _is_mine(turn, fence, at.now):
        return None
    at.update("turns", (id,), idle_claims=0)
    at.lock("journal", id, step)
    found = at.get("journal", id, step)
    if found is None:
        row = {"turn_id": id, "step": step, "fence": fence, "intent": intent, "intents": 1, "result": given}
        at.insert("journal", (id, step), {**row, "tenant": turn["tenant"]})
    elif found["fence"] > fence:
        return None
    else:
        at.update("journal", (id, step), fence=fence, result=given)
    return {"true": True}


@statement("SELECT record FROM traces WHERE turn_id = $1")
def read_record(at: Transaction, id: UUID) -> Row | None:
    row = at.get("traces", id)
    return None if row is None else {"record": row["record"]}


@statement(turns._KEEP, "709b0d")
def keep_record(
    at: Transaction, id: UUID, fence: int, record: str, memories: list[str], tenant: str, profile: str
) -> Row | None:
    """The model knows of no profiles: none of its turns runs with one."""
    turn = at.get("turns", id)
    if turn is None or turn["fence"] != fence or turn["status"] != "running":
        return None
    at.lock("traces", id)
    if at.get("traces", id) is None:
        at.insert("traces", (id,), {"turn_id": id, "tenant": turn["tenant"], "record": record})
    else:
        at.update("traces", (id,), record=record)
    return {"known": False}


# The outbox, and writes with a key.


@statement("INSERT INTO outbox (tenant, subject, body, headers) VALUES ($1, $2, $3, $4)")
def write_outbox(at: Transaction, tenant: str, subject: str, body: bytes, headers: Row) -> None:
    id = at.server.next_id()
    at.insert("outbox", (id,), {"id": id, "tenant": tenant, "subject": subject, "body": body, "headers": headers})


@statement("SELECT id, tenant, subject, body, headers FROM outbox ORDER BY id LIMIT $1")
def read_outbox(at: Transaction, limit: int) -> list[Row]:
    return sorted(at.rows("outbox"), key=lambda row: row["id"])[:limit]


@statement("SELECT count(*) FROM outbox")
def count_outbox(at: Transaction) -> Row:
    return {"count": len(at.rows("outbox"))}


@statement("DELETE FROM outbox WHERE id = ANY($1::bigint[])")
def delete_outbox(at: Transaction, ids: list[int]) -> None:
    for id in ids:
        if at.get("outbox", id) is not None:
            at.delete("outbox", (id,))


@statement("INSERT INTO writes (tenant, service, key, arguments) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING true")
def begin_write(at: Transaction, tenant: str, service: str, key: str, digest: str) -> Row | None:
    at.lock("writes", tenant, service, key)
    if at.get("writes", tenant, service, key) is not None:
        return None
    at.insert("writes", (tenant, service, key), {"tenant": tenant, "arguments": digest, "result": None})
    return {"true": True}


@statement("SELECT arguments, result FROM writes WHERE tenant = $1 AND service = $2 AND key = $3")
def read_write(at: Transaction, tenant: str, service: str, key: str) -> Row | None:
    return at.get("writes", tenant, service, key)


@statement("UPDATE writes SET result = $4 WHERE tenant = $1 AND service = $2 AND key = $3")
def end_write(at: Transaction, tenant: str, service: str, key: str, given: Row) -> None:
    at.update("writes", (tenant, service, key), result=given)


# Approvals.


@statement(approvals._WAIT, "26f566")
def wait_for_approval(
    at: Transaction,
    id: UUID,
    fence: int,
    approval: UUID,
    lifetime: timedelta,
    left: timedelta,
    step: str,
    tool: str,
    action: str,
    arguments: Row,
    digest: str,
    risk: str,
    irreversible: bool,
    reason: str,
    effect: str,
    because: Any,
    host: str,
    grantable: bool,
) -> Row | None:
    row = at.get("turns", id)
    if row is None or not _is_mine(row, fence, at.now):
        return None
    expires = at.now + lifetime + max(row["expires_at"] - at.now, left)
    values = {"status": "waiting", "idle_claims": 0, "approval_id": approval, "expires_at": expires}
    at.update("turns", (id,), **values, **_ENDED)
    asked = {
        **{"id": approval, "tenant": row["tenant"], "user_id": row["user_id"], "turn_id": id, "status": "pending"},
        **{"conversation_id": row["conversation_id"], "agent": row["agent"], "expires_at": at.now + lifetime, "step": step},
        **{"tool": tool, "action": action, "arguments": arguments, "digest": digest, "risk": risk, "reason": reason},
        **{"irreversible": irreversible, "effect": effect, "because": because, "host": host, "grantable": grantable},
        **{"note": "", "created_at": at.now, "answered_at": None, "answered_by": None, "scope": "once"},
    }
    at.insert("approvals", (approval,), asked, [("turn_id,step", (id, step)), ("turn_id,status", (id, "pending"))])
    return {"true": True}


@statement("SELECT status, digest, note FROM approvals WHERE id = $1 AND tenant = $2 AND turn_id = $3")
def read_answer(at: Transaction, id: UUID, tenant: str, turn: UUID) -> Row | None:
    row = at.get("approvals", id)
    return row if row is not None and (row["tenant"], row["turn_id"]) == (tenant, turn) else None


@statement(f"SELECT * FROM approvals WHERE {approvals._OF_CALLER}")
def find_approval(at: Transaction, id: UUID, tenant: str, administers: bool, user: str) -> Row | None:
    row = at.get("approvals", id)
    return row if row is not None and row["tenant"] == tenant and (administers or row["user_id"] == user) else None


@statement("SELECT FROM turns WHERE id = $1 FOR UPDATE")
def lock_turn(at: Transaction, id: UUID) -> None:
    if at.get("turns", id) is not None:
        at.lock("turns", id)


@statement(approvals._ANSWER, "1aa9a9")
def answer(
    at: Transaction, id: UUID, tenant: str, administers: bool, user: str, status: str, by: str, note: str, scope: str
) -> Row | None:
    row = find_approval(at, id, tenant, administers, user)
    if row is None or row["status"] != "pending" or row["expires_at"] <= at.now:
        return None
    values = {"status": str(status), "answered_at": at.now, "answered_by": by, "note": note, "scope": str(scope)}
    return at.update("approvals", (id,), **values)


@statement(approvals.RESUME, "965576")
def resume(at: Transaction, id: UUID, expired: datetime) -> None:
    row = at.get("turns", id)
    if row is None or row["status"] != "waiting":
        return
    sequence = row["sequence"]
    if at.get("conversations", row["conversation_id"]) is not None:
        at.lock("conversations", row["conversation_id"])
        found = at.get("conversations", row["conversation_id"])
        assert found is not None
        more = int(found["next_turn"] > sequence + 1)
        sequence = found["next_turn"] + more - 1
        at.update("conversations", (found["id"],), next_turn=sequence + 1, moved=found["moved"] + more)
    expires = at.now + (row["expires_at"] - expired)
    unique = [("conversation_id,sequence", (row["conversation_id"], sequence))]
    at.update("turns", (id,), unique, status="queued", sequence=sequence, expires_at=expires)


@statement(approvals._DUE, "2f5a6a")
def find_due(at: Transaction, limit: int) -> list[Row]:
    due = [row for row in at.rows("approvals") if row["status"] == "pending" and row["expires_at"] <= at.now]
    found: list[Row] = []
    for asked in sorted(due, key=lambda row: row["expires_at"]):
        turn = at.get("turns", asked["turn_id"])
        if len(found) < limit and turn is not None and turn["status"] == "waiting" and not at.is_locked("turns", turn["id"]):
            at.lock("turns", turn["id"])
            found.append({"id": turn["id"]})
    return found


@statement(approvals._EXPIRE, "5c9520")
def expire(at: Transaction, ids: list[UUID]) -> list[Row]:
    return [
        at.update("approvals", (row["id"],), status="expired")
        for row in at.rows("approvals")
        if row["turn_id"] in ids and row["status"] == "pending" and row["expires_at"] <= at.now
    ]


@statement(approvals._PRINCIPAL, "08d7bd")
def read_principal(at: Transaction, id: UUID) -> Row | None:
    row = at.get("turns", id)
    return None if row is None else {"principal": row["principal"]}
