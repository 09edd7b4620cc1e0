"""Background tasks in Postgres: their states, under the fence of their turns, and the templates of their plans."""

from __future__ import annotations

from uuid import UUID

import asyncpg

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.orchestrator import SubmitTurn
from phronesis_contracts.tasks import ListTasks, Task, TaskBudget, Tasks, TaskState
from phronesis_postgres import Database

from ..domain import Claim, LostClaim
from ..tasks.plan import Plan
from .intake import uuid_of

_MINE = "SELECT id FROM turns WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > now()"
_KEEP_STATE = f"""
INSERT INTO task_states (turn_id, tenant, state) SELECT id, $3, $4 FROM ({_MINE}) AS mine
ON CONFLICT (turn_id) DO UPDATE SET state = excluded.state, updated_at = now() RETURNING turn_id
"""  # noqa: S608
# A task that is taken over keeps its template once.
_KEEP_TEMPLATE = f"""
INSERT INTO task_templates (tenant, user_id, signature, turn_id, plan) SELECT $3, $4, $5, id, $6 FROM ({_MINE}) AS mine
ON CONFLICT (tenant, user_id, signature) DO UPDATE SET plan = excluded.plan, turn_id = excluded.turn_id, updated_at = now(),
    version = task_templates.version + (task_templates.turn_id <> excluded.turn_id)::int
RETURNING turn_id
"""  # noqa: S608
_TEMPLATE = """
UPDATE task_templates SET hits = hits + 1 WHERE tenant = $1 AND user_id = $2 AND signature = $3 RETURNING plan
"""
_TASKS = """
SELECT turns.*, task_states.state FROM turns LEFT JOIN task_states ON task_states.turn_id = turns.id
WHERE turns.tenant = $1 AND turns.user_id = $2 AND turns.background AND NOT turns.erased
"""


class PostgresTasks:
    """The store of tasks.

    Args:
        database: the orchestrator's schema.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, who: Principal, task_id: str) -> Task:
        """One task of the caller; a turn that is no task is as unknown as one of another."""
        async with self._database.connection(who.tenant) as connection:
            row = await connection.fetchrow(f"{_TASKS} AND turns.id = $3", who.tenant, who.user, uuid_of(task_id, "task"))
        if row is None:
            raise NotFound("no such task")
        return _task(row)

    async def list(self, who: Principal, query: ListTasks) -> Tasks:
        """The caller's tasks, newest first, without their reports."""
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(
                f"{_TASKS} AND ($3::text IS NULL OR turns.status = $3) ORDER BY turns.created_at DESC, turns.id LIMIT $4",
                who.tenant,
                who.user,
                query.status,
                query.limit,
            )
        return Tasks(tasks=tuple(_brief(_task(row)) for row in rows))

    async def keep_state(self, claim: Claim, state: TaskState) -> None:
        """Write down how far a task is."""
        async with self._database.transaction(claim.who.tenant) as connection:
            kept = await connection.fetchval(
                _KEEP_STATE, UUID(claim.turn_id), claim.fence, claim.who.tenant, state.model_dump(mode="json")
            )
        if kept is None:
            raise LostClaim(claim.turn_id)

    async def journalled(self, claim: Claim) -> frozenset[str]:
        """Names of the steps of a task that have a result."""
        async with self._database.connection(claim.who.tenant) as connection:
            rows = await connection.fetch(
                "SELECT step FROM journal WHERE turn_id = $1 AND result IS NOT NULL", UUID(claim.turn_id)
            )
        return frozenset(row["step"] for row in rows)

    async def template(self, who: Principal, signature: str) -> Plan | None:
        """The plan that worked for goals of this signature."""
        async with self._database.transaction(who.tenant) as connection:
            plan = await connection.fetchval(_TEMPLATE, who.tenant, who.user, signature)
        return Plan.model_validate(plan) if plan is not None else None

    async def keep_template(self, claim: Claim, signature: str, plan: Plan) -> None:
        """Keep a plan that worked."""
        who = claim.who
        async with self._database.transaction(who.tenant) as connection:
            kept = await connection.fetchval(
                _KEEP_TEMPLATE, UUID(claim.turn_id), claim.fence, who.tenant, who.user, signature, plan.model_dump(mode="json")
            )
        if kept is None:
            raise LostClaim(claim.turn_id)


def _task(row: asyncpg.Record) -> Task:
    request = SubmitTurn.model_validate(row["request"])
    reply = row["reply"] or {}
    return Task(
        task_id=str(row["id"]),
        conversation_id=str(row["conversation_id"]),
        agent=row["agent"],
        goal=request.text,
        budget=request.task.budget if request.task else TaskBudget(),
        status=row["status"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
        progress=TaskState.model_validate(row["state"] or {}),
        usage=reply.get("usage"),
        problem=row["problem"],
    )


def _brief(task: Task) -> Task:
    return task.model_copy(update={"progress": task.progress.model_copy(update={"report": None})})
