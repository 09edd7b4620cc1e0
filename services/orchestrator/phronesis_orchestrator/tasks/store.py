"""Background tasks in Postgres, under the fence of their turns, and their strategies in the memory service."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Literal
from uuid import UUID, uuid5

import asyncpg

from phronesis_bus import Call, audit_entry
from phronesis_contracts import BadRequest, NotFound, Principal, Risk, ServiceError
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.episodes import (
    MAX_APPROACH,
    MAX_GOAL,
    MAX_TOOLS,
    RECALL_STRATEGIES,
    RECORD_STRATEGY,
    VERIFY_STRATEGIES,
    RecallStrategies,
    RecordStrategy,
    VerifyStrategies,
)
from phronesis_contracts.orchestrator import SubmitTurn, TaskBudget, TurnStatus
from phronesis_contracts.outside import OutcomeUnknown
from phronesis_contracts.service import AUDITED
from phronesis_contracts.tasks import (
    AnswerTask,
    ArmEffect,
    Difference,
    ListTasks,
    NotWaiting,
    StepState,
    StrategiesArm,
    StrategyEffect,
    Task,
    TaskCancelled,
    TaskEffect,
    TaskRef,
    Tasks,
    TaskState,
    TaskStep,
    TaskWait,
    Verified,
)
from phronesis_postgres import EVERY_TENANT, Connection, Database, write_news, write_once

from ..approvals.store import RESUME
from ..turns.ports import Neighbours
from ..turns.store import waited_for
from ..turns.turn import Claim, LostClaim, fill_goal, parse_uuid, problem_from_error, with_goal
from .ports import EndedWait, Lesson, Plan, Strategy, WaitOrder
from .report import DOCUMENT

_MINE = "SELECT id FROM turns WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > now()"
_KEEP_STATE = f"""
INSERT INTO task_states (turn_id, tenant, state) SELECT id, $3, $4 FROM ({_MINE}) AS mine
ON CONFLICT (turn_id) DO UPDATE SET state = excluded.state, updated_at = now() RETURNING turn_id
"""  # noqa: S608
# A task that is taken over keeps its template once.
_ON_TEMPLATE = """
ON CONFLICT (tenant, user_id, signature) DO UPDATE SET plan = excluded.plan, turn_id = excluded.turn_id, updated_at = now(),
    version = task_templates.version + (task_templates.turn_id <> excluded.turn_id)::int
"""
_KEEP_TEMPLATE = f"""
INSERT INTO task_templates (tenant, user_id, signature, turn_id, plan) SELECT $3, $4, $5, id, $6 FROM ({_MINE}) AS mine
{_ON_TEMPLATE} RETURNING turn_id
"""  # noqa: S608
_LEARN_TEMPLATE = f"""
INSERT INTO task_templates (tenant, user_id, signature, turn_id, plan)
SELECT tenant, user_id, $4, id, $5 FROM turns WHERE id = $1 AND tenant = $2 AND user_id = $3 AND NOT erased
{_ON_TEMPLATE}
"""  # noqa: S608
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
        AND request -> 'task' ->> 'dry_run_of' IS NULL
) AS ended WHERE arm IN ('used', 'held_out') GROUP BY arm
"""
_TEMPLATE = """
UPDATE task_templates SET hits = hits + $4 WHERE tenant = $1 AND user_id = $2 AND signature = $3 RETURNING plan
"""
_TASKS = """
SELECT turns.*, task_states.state FROM turns LEFT JOIN task_states ON task_states.turn_id = turns.id
WHERE turns.tenant = $1 AND turns.user_id = $2 AND turns.background AND NOT turns.erased
"""


_STEP = "task.step."
ENDED_EARLY = "task.ended_early"
"""Code of a step that the end of its task came before."""
_MADE = """
SELECT step, intent, result IS NOT NULL AS ended, result -> 'problem' ->> 'code' AS code FROM journal
WHERE turn_id = $1 AND (step LIKE 'task.step.%' OR step = $2) ORDER BY intent_at, step
"""


class PostgresTasks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, who: Principal, task_id: str) -> Task:
        async with self._database.connection(who.tenant) as connection:
            row = await connection.fetchrow(f"{_TASKS} AND turns.id = $3", who.tenant, who.user, parse_uuid(task_id, "task"))
            if row is None:
                raise NotFound("no such task")
            task = _task_from_row(row)
            if task.status is TurnStatus.WAITING and (wait := await connection.fetchrow(_PENDING, row["id"])):
                shown = {"question": wait["question"], "choices": tuple(wait["choices"])}
                waits = TaskWait(kind=wait["kind"], until=wait["due_at"], since=wait["created_at"], **shown)
                task = task.model_copy(update={"waiting": waits})
            if not task.status.ended:
                return task
            made = await connection.fetch(_MADE, row["id"], DOCUMENT)
        return _with_effects(task, made)

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

    async def template(self, who: Principal, signature: str, *, counted: bool = True) -> Plan | None:
        async with self._database.transaction(who.tenant) as connection:
            plan = await connection.fetchval(_TEMPLATE, who.tenant, who.user, signature, int(counted))
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
    request = with_goal(SubmitTurn.model_validate(row["request"]))
    reply = row["reply"] or {}
    return Task(
        task_id=str(row["id"]),
        conversation_id=str(row["conversation_id"]),
        agent=row["agent"],
        goal=fill_goal(request),
        budget=request.task.budget if request.task else TaskBudget(),
        status=row["status"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
        progress=TaskState.model_validate(row["state"] or {}),
        usage=reply.get("usage"),
        problem=row["problem"],
        schedule=request.task.schedule if request.task else None,
        dry_run=request.task is not None and request.task.dry_run_of is not None,
        waiting_for=waited_for(row),
    )


def _with_effects(task: Task, made: Sequence[asyncpg.Record]) -> Task:
    """An ended task with what it did, and, where it did not come to its own end, with the states that its steps ended in."""
    effects = tuple(effect for row in made if (effect := _effect(task, row)) is not None)
    progress = task.progress.model_copy(update={"effects": effects})
    if task.status is TurnStatus.COMPLETED:
        return task.model_copy(update={"progress": progress})
    codes = {row["step"].removeprefix(_STEP): (row["ended"], row["code"]) for row in made}
    steps = tuple(_ended_step(step, codes) for step in progress.steps)
    progress = progress.model_copy(update={"steps": steps})
    problem = task.problem
    if task.status is TurnStatus.CANCELLED:
        done = sum(step.state is StepState.DONE for step in steps)
        after = f" after {done} of {len(steps)} steps" if steps else ""
        problem = problem_from_error(TaskCancelled(f"the task was cancelled{after}; {describe_effects(effects)}"))
    elif problem is not None and effects:
        problem = problem.model_copy(update={"detail": f"{problem.detail}; {describe_effects(effects)}"})
    return task.model_copy(update={"progress": progress, "problem": problem})


def _effect(task: Task, row: asyncpg.Record) -> TaskEffect | None:
    tool = str(row["intent"].get("call", ""))
    known = TOOLS.get(tool)
    # A journal of the version before says of no call whether it changes something.
    changes = row["intent"].get("changes", known is not None and known.risk > Risk.READ)
    if not changes or (row["ended"] and row["code"] not in (None, OutcomeUnknown.code)):
        return None
    state: Literal["done", "unknown"] = "done" if row["ended"] and row["code"] is None else "unknown"
    if row["step"] == DOCUMENT:
        return TaskEffect(step="report", description="Save the report", tool=tool, state=state)
    name = row["step"].removeprefix(_STEP)
    of = [step for step in task.progress.steps if name == step.id or name.startswith(f"{step.id}.")]
    step = max(of, key=lambda one: len(one.id), default=None)
    return TaskEffect(step=step.id if step else name, description=step.description if step else tool, tool=tool, state=state)


def _ended_step(step: TaskStep, codes: Mapping[str, tuple[bool, str | None]]) -> TaskStep:
    if step.state not in (StepState.PENDING, StepState.RUNNING):
        return step
    if step.id not in codes:
        begun = any(name.startswith(f"{step.id}.") for name in codes)
        early = StepState.FAILED if begun else StepState.SKIPPED
        return step.model_copy(update={"state": early, "code": ENDED_EARLY})
    ended, code = codes[step.id]
    if not ended:
        return step.model_copy(update={"state": StepState.FAILED, "code": ENDED_EARLY})
    return step.model_copy(update={"state": StepState.DONE if code is None else StepState.FAILED, "code": code})


def describe_effects(effects: Sequence[TaskEffect]) -> str:
    """What a task did, in words that end a sentence."""
    done = _listed(effect for effect in effects if effect.state == "done")
    unknown = _listed(effect for effect in effects if effect.state == "unknown")
    if not effects:
        return "nothing was changed"
    parts = [f"this was done and stays done: {done}"] if done else []
    parts += [f"of this it is not known whether it was done: {unknown}"] if unknown else []
    return "; ".join(parts)


_NAMED = 10
"""Effects that a sentence names."""


def _listed(effects: Iterable[TaskEffect]) -> str:
    every = [f"{one.description.rstrip('.')[:100]} ({one.tool})" for one in effects]
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more


def _without_report(task: Task) -> Task:
    return task.model_copy(update={"progress": task.progress.model_copy(update={"report": None, "calls": ()})})


_WAITS = UUID("3f1c6f5e-8a67-5d0b-9a1d-2b8f4f7d9c60")
LEFT = timedelta(seconds=60)
"""Time that a task has at least from the end of its wait on, however late it began to wait."""
_BEGIN_WAIT = """
WITH mine AS (
    UPDATE turns SET status = 'waiting', lease_until = NULL, worker = NULL, idle_claims = 0,
        expires_at = $8::timestamptz + greatest(expires_at - now(), $9::interval)
    WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > now() RETURNING id, tenant, user_id
)
INSERT INTO task_waits (id, turn_id, tenant, user_id, step, kind, question, choices, due_at)
SELECT $3, id, tenant, user_id, $4, $5, $6, $7::text[], $8 FROM mine RETURNING true
"""
_OPEN_TASK = "SELECT id FROM turns WHERE tenant = $1 AND user_id = $2 AND id = $3 AND background AND NOT erased FOR UPDATE"
_PENDING = "SELECT * FROM task_waits WHERE turn_id = $1 AND status = 'pending'"
_ANSWER = "UPDATE task_waits SET status = 'answered', answer = $2, ended_at = now() WHERE id = $1"
# Turns first, as everywhere; one that somebody else holds at the moment is answered, cancelled or deleted.
_DUE = """
SELECT turns.id FROM turns JOIN task_waits ON task_waits.turn_id = turns.id
WHERE task_waits.status = 'pending' AND due_at <= now() AND turns.status = 'waiting'
ORDER BY due_at LIMIT $1 FOR UPDATE OF turns SKIP LOCKED
"""
_OVER = """
UPDATE task_waits SET status = 'over', ended_at = due_at
WHERE turn_id = ANY($1::uuid[]) AND status = 'pending' AND due_at <= now() RETURNING turn_id, due_at
"""
_WAITED = """
SELECT coalesce(extract(epoch FROM sum(ended_at - created_at)), 0)::float8
    + (SELECT waited_seconds FROM turns WHERE id = $1) FROM (
    SELECT created_at, ended_at FROM task_waits WHERE turn_id = $1 AND ended_at IS NOT NULL UNION ALL
    SELECT created_at, coalesce(answered_at, expires_at) FROM approvals WHERE turn_id = $1 AND status <> 'pending'
) AS waits
"""


class PostgresWaits:
    """The table `task_waits`. See `TaskWaits`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def found(self, claim: Claim, step: str) -> EndedWait | None:
        async with self._database.connection(claim.who.tenant) as connection:
            row = await connection.fetchrow(
                "SELECT * FROM task_waits WHERE turn_id = $1 AND step = $2 AND status <> 'pending'", UUID(claim.turn_id), step
            )
        return EndedWait(row["due_at"], row["answer"]) if row is not None else None

    async def begin(self, claim: Claim, wait: WaitOrder) -> None:
        id = uuid5(_WAITS, f"{claim.turn_id}/{wait.step}")
        values = (wait.step, wait.kind, wait.question, list(wait.choices), wait.due, LEFT)
        async with self._database.transaction(claim.who.tenant) as connection:
            if not await connection.fetchval(_BEGIN_WAIT, UUID(claim.turn_id), claim.fence, id, *values):
                raise LostClaim(claim.turn_id)

    async def waited(self, claim: Claim) -> float:
        async with self._database.connection(claim.who.tenant) as connection:
            waited: float = await connection.fetchval(_WAITED, UUID(claim.turn_id))
        return waited

    async def answer(self, call: Call, request: AnswerTask) -> TaskRef:
        """Take the owner's answer to what a task asks, and let it go on.

        Raises:
            NotFound: the caller has no such task.
            NotWaiting: it asks nothing.
            BadRequest: the answer is none of the choices.
        """
        who, id = call.who, parse_uuid(request.task_id, "task")

        async def write(connection: Connection) -> TaskRef:
            # Answers, the sweep, a cancellation and a deletion come one after the other by the turn's row.
            turn = await connection.fetchval(_OPEN_TASK, who.tenant, who.user, id)
            if turn is None:
                raise NotFound("no such task")
            row = await connection.fetchrow(f"{_PENDING} AND kind = 'person' AND due_at > now()", id)
            if row is None:
                raise NotWaiting("the task asks nothing")
            await connection.execute(_ANSWER, row["id"], choose_answer(request.answer, row["choices"]))
            await connection.execute(RESUME, id, row["due_at"])
            entry = audit_entry(who, "task.answer", {"task_id": str(id), "step": row["step"]})
            await write_news(connection, "orchestrator", who.tenant, AUDITED["orchestrator"], entry)
            return TaskRef(task_id=str(id))

        return await write_once(self._database, call, request, TaskRef, write)

    async def end_due(self, limit: int) -> int:
        """Put up to `limit` tasks whose waits are over back into the queue; how many that were."""
        async with self._database.transaction(EVERY_TENANT) as connection:
            due = [row["id"] for row in await connection.fetch(_DUE, limit)]
            rows = await connection.fetch(_OVER, due) if due else []
            for row in rows:
                await connection.execute(RESUME, row["turn_id"], row["due_at"])
        return len(rows)


def choose_answer(answer: str, choices: Sequence[str]) -> str:
    """The choice that an answer is, in the words of the choice. Raises `BadRequest` where it is none of them."""
    said = answer.strip()
    if not choices:
        return said
    found = next((choice for choice in choices if choice.strip().casefold() == said.casefold()), None)
    if found is None:
        raise BadRequest(f"answer with one of: {', '.join(choices)}", field="answer")
    return found


log = logging.getLogger(__name__)


class RememberedStrategies:
    """Asks the memory. `neighbours`: the services that may be asked."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours

    async def recall(self, who: Principal, goal: str, n: int, agent: str, tools: tuple[str, ...]) -> tuple[Strategy, ...]:
        try:
            request = RecallStrategies(goal=goal[:MAX_GOAL], n=n, agent=agent, tools=tools[:MAX_TOOLS])
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


def _key(task_id: str, what: str, verified: Verified) -> str:
    """The key of a write: the same word about a task is told once, and a changed one anew."""
    return f"{task_id}/{what}/{verified.at.timestamp():.6f}"
