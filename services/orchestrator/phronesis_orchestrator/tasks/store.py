"""Background tasks in Postgres, under the fence of their turns, and their strategies in the memory service."""

from __future__ import annotations

import logging
import math
from uuid import UUID

import asyncpg

from phronesis_bus import audit_entry
from phronesis_contracts import NotFound, Principal, ServiceError
from phronesis_contracts.episodes import (
    MAX_APPROACH,
    MAX_GOAL,
    RECALL_STRATEGIES,
    RECORD_STRATEGY,
    VERIFY_STRATEGIES,
    RecallStrategies,
    RecordStrategy,
    VerifyStrategies,
)
from phronesis_contracts.orchestrator import SubmitTurn, TaskBudget
from phronesis_contracts.service import AUDITED
from phronesis_contracts.tasks import (
    ArmEffect,
    Difference,
    ListTasks,
    StrategiesArm,
    StrategyEffect,
    Task,
    Tasks,
    TaskState,
    Verified,
)
from phronesis_postgres import Database, write_news

from ..turns.ports import Neighbours
from ..turns.turn import Claim, LostClaim, parse_uuid
from .ports import Lesson, Plan, Strategy

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
_LEARN_TEMPLATE = """
INSERT INTO task_templates (tenant, user_id, signature, turn_id, plan)
SELECT tenant, user_id, $4, id, $5 FROM turns WHERE id = $1 AND tenant = $2 AND user_id = $3 AND NOT erased
ON CONFLICT (tenant, user_id, signature) DO UPDATE SET plan = excluded.plan, turn_id = excluded.turn_id, updated_at = now(),
    version = task_templates.version + (task_templates.turn_id <> excluded.turn_id)::int
"""
_DROP_TEMPLATE = "DELETE FROM task_templates WHERE turn_id = $1 AND tenant = $2 AND user_id = $3"
_LESSON = """
SELECT result FROM journal JOIN turns ON turns.id = turn_id
WHERE turn_id = $1 AND tenant = $2 AND user_id = $3 AND NOT erased AND step = 'task.lesson' AND result IS NOT NULL
"""
_KEEP_VERIFIED = """
INSERT INTO task_states (turn_id, tenant, state)
SELECT id, tenant, jsonb_build_object('verified', $4::jsonb) FROM turns
WHERE id = $1 AND tenant = $2 AND user_id = $3 AND background AND NOT erased AND ended_at IS NOT NULL
ON CONFLICT (turn_id) DO UPDATE SET state = task_states.state || excluded.state, updated_at = now() RETURNING turn_id
"""
_ARMS = """
SELECT arm, count(*) AS tasks, count(verified) AS verified, count(*) FILTER (WHERE verified) AS accepted,
    avg(steps)::float8 AS steps
FROM (
    SELECT state ->> 'strategies_arm' AS arm, (state -> 'verified' ->> 'accepted')::boolean AS verified, (
        SELECT count(*) FROM jsonb_array_elements(state -> 'steps') AS step WHERE step ->> 'state' IN ('done', 'failed')
    ) AS steps
    FROM turns JOIN task_states ON turn_id = turns.id
    WHERE turns.tenant = $1 AND user_id = $2 AND background AND NOT erased AND ended_at IS NOT NULL AND status <> 'cancelled'
) AS ended WHERE arm IN ('used', 'held_out') GROUP BY arm
"""
_TEMPLATE = """
UPDATE task_templates SET hits = hits + 1 WHERE tenant = $1 AND user_id = $2 AND signature = $3 RETURNING plan
"""
_TASKS = """
SELECT turns.*, task_states.state FROM turns LEFT JOIN task_states ON task_states.turn_id = turns.id
WHERE turns.tenant = $1 AND turns.user_id = $2 AND turns.background AND NOT turns.erased
"""


class PostgresTasks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, who: Principal, task_id: str) -> Task:
        async with self._database.connection(who.tenant) as connection:
            row = await connection.fetchrow(f"{_TASKS} AND turns.id = $3", who.tenant, who.user, parse_uuid(task_id, "task"))
        if row is None:
            raise NotFound("no such task")
        return _task_from_row(row)

    async def list(self, who: Principal, query: ListTasks) -> Tasks:
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(
                f"{_TASKS} AND ($3::text IS NULL OR turns.status = $3) ORDER BY turns.created_at DESC, turns.id LIMIT $4",
                who.tenant,
                who.user,
                query.status,
                query.limit,
            )
        return Tasks(tasks=tuple(_without_report(_task_from_row(row)) for row in rows))

    async def keep_state(self, claim: Claim, state: TaskState) -> None:
        async with self._database.transaction(claim.who.tenant) as connection:
            kept = await connection.fetchval(
                _KEEP_STATE, UUID(claim.turn_id), claim.fence, claim.who.tenant, state.model_dump(mode="json")
            )
        if kept is None:
            raise LostClaim(claim.turn_id)

    async def journalled(self, claim: Claim) -> frozenset[str]:
        async with self._database.connection(claim.who.tenant) as connection:
            rows = await connection.fetch(
                "SELECT step FROM journal WHERE turn_id = $1 AND result IS NOT NULL", UUID(claim.turn_id)
            )
        return frozenset(row["step"] for row in rows)

    async def template(self, who: Principal, signature: str) -> Plan | None:
        async with self._database.transaction(who.tenant) as connection:
            plan = await connection.fetchval(_TEMPLATE, who.tenant, who.user, signature)
        return Plan.model_validate(plan) if plan is not None else None

    async def keep_template(self, claim: Claim, signature: str, plan: Plan) -> None:
        who = claim.who
        async with self._database.transaction(who.tenant) as connection:
            kept = await connection.fetchval(
                _KEEP_TEMPLATE, UUID(claim.turn_id), claim.fence, who.tenant, who.user, signature, plan.model_dump(mode="json")
            )
        if kept is None:
            raise LostClaim(claim.turn_id)

    async def lesson(self, who: Principal, task_id: str) -> Lesson | None:
        """What can be learnt of a task of the caller; `None` where it came to no end, or is older than lessons."""
        async with self._database.connection(who.tenant) as connection:
            kept = await connection.fetchval(_LESSON, parse_uuid(task_id, "task"), who.tenant, who.user)
        return Lesson.model_validate(kept["lesson"]) if kept is not None else None

    async def verify(self, who: Principal, task_id: str, verified: Verified, template: Lesson | None) -> None:
        """Keep what the caller says of an ended task's result, with its plan or without.

        Args:
            template: whose plan is kept as a template; without one the plan that was learnt from the task goes.

        Raises:
            NotFound: it is gone meanwhile.
        """
        id = parse_uuid(task_id, "task")
        said = verified.model_dump(mode="json")
        async with self._database.transaction(who.tenant) as connection:
            if await connection.fetchval(_KEEP_VERIFIED, id, who.tenant, who.user, said) is None:
                raise NotFound("no such task")
            if template is not None:
                plan = template.plan.model_dump(mode="json")
                await connection.execute(_LEARN_TEMPLATE, id, who.tenant, who.user, template.signature, plan)
            else:
                await connection.execute(_DROP_TEMPLATE, id, who.tenant, who.user)
            entry = audit_entry(who, "task.outcome", {"task_id": task_id, "accepted": verified.accepted})
            await write_news(connection, "orchestrator", who.tenant, AUDITED["orchestrator"], entry)

    async def effect(self, who: Principal) -> StrategyEffect:
        """How the caller's tasks ended with strategies, and where these were withheld."""
        async with self._database.connection(who.tenant) as connection:
            rows = await connection.fetch(_ARMS, who.tenant, who.user)
        arms = {row["arm"]: row for row in rows}
        used, held_out = (_effect_from_row(arm, arms.get(arm)) for arm in (StrategiesArm.USED, StrategiesArm.HELD_OUT))
        return StrategyEffect(used=used, held_out=held_out, difference=_compare(used, held_out))


_Z = 1.96
"""Of a 95 % interval."""


def wilson_interval(accepted: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; all of 0 to 1 where nothing is known."""
    if of == 0:
        return 0.0, 1.0
    share, z2 = accepted / of, _Z * _Z
    middle, spread = share + z2 / (2 * of), _Z * math.sqrt((share * (1 - share) + z2 / (4 * of)) / of)
    return max(0.0, (middle - spread) / (1 + z2 / of)), min(1.0, (middle + spread) / (1 + z2 / of))


def _effect_from_row(arm: StrategiesArm, row: asyncpg.Record | None) -> ArmEffect:
    if row is None:
        return ArmEffect(arm=arm)
    verified, accepted = row["verified"], row["accepted"]
    low, high = wilson_interval(accepted, verified)
    share = accepted / verified if verified else None
    return ArmEffect(
        **{"arm": arm, "tasks": row["tasks"], "verified": verified, "accepted": accepted},
        **{"share": share, "low": low, "high": high, "steps": row["steps"]},
    )


def _compare(used: ArmEffect, held_out: ArmEffect) -> Difference:
    if used.low > held_out.high:
        return Difference.BETTER
    return Difference.WORSE if used.high < held_out.low else Difference.NONE_SHOWN


def _task_from_row(row: asyncpg.Record) -> Task:
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


def _without_report(task: Task) -> Task:
    return task.model_copy(update={"progress": task.progress.model_copy(update={"report": None})})


log = logging.getLogger(__name__)


class RememberedStrategies:
    """Asks the memory. `neighbours`: the services that may be asked."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours

    async def recall(self, who: Principal, goal: str, n: int, agent: str, tools: tuple[str, ...]) -> tuple[Strategy, ...]:
        try:
            request = RecallStrategies(goal=goal[:MAX_GOAL], n=n, agent=agent, tools=tools[:_NAMED])
            found = await self._neighbours.ask(who, RECALL_STRATEGIES, request)
        except ServiceError as error:
            log.warning("no strategies could be recalled: %s", error.code)
            return ()
        return tuple(
            Strategy(one.id, one.goal, one.approach, one.tools_used, one.avoid, one.labels) for one in found.strategies
        )

    async def record(self, who: Principal, lesson: Lesson, verified: Verified) -> None:
        request = RecordStrategy(
            task_id=lesson.task_id,
            goal=lesson.goal[:MAX_GOAL],
            approach=lesson.approach[:MAX_APPROACH],
            tools_used=lesson.tools_used,
            score=lesson.score,
            succeeded=lesson.succeeded,
            avoid=lesson.avoid[:MAX_APPROACH],
            conversation_id=lesson.conversation_id,
            labels=lesson.labels,
            verified_by=verified.by,
            agent=lesson.agent,
            kind=lesson.plan.kind,
            ontology=lesson.ontology,
        )
        await self._neighbours.ask(who, RECORD_STRATEGY, request, key=_key(lesson.task_id, "task.strategy", verified))

    async def outcome(self, who: Principal, task_id: str, ids: tuple[str, ...], verified: Verified) -> None:
        request = VerifyStrategies(task_id=task_id, ids=ids, accepted=verified.accepted, by=verified.by)
        await self._neighbours.ask(who, VERIFY_STRATEGIES, request, key=_key(task_id, "task.outcome", verified))


_NAMED = 500
"""Tools that a recall names at most."""


def _key(task_id: str, what: str, verified: Verified) -> str:
    """The key of a write: the same word about a task is told once, and a changed one anew."""
    return f"{task_id}/{what}/{verified.at.timestamp():.6f}"
