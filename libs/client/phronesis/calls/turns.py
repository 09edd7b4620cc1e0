"""Calls about turns: messages, uploads, conversations, approvals with the policy of actions, background tasks, strategies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from phronesis_contracts import BadRequest, TimedOut, TooLarge
from phronesis_contracts.approvals import (
    ActionRule,
    AnswerApproval,
    Approval,
    ApprovalScope,
    ApprovalStatus,
    Decision,
    Grant,
    PolicyVersion,
    SetActionPolicy,
)
from phronesis_contracts.deletions import Deletion
from phronesis_contracts.episodes import KeptStrategy, StrategyEdit, StrategyState
from phronesis_contracts.media import MAX_UPLOAD, Media
from phronesis_contracts.orchestrator import Conversation, ConversationPage, Reply, TaskBudget, Turn, TurnStatus
from phronesis_contracts.tasks import (
    DEFAULT_AGENT,
    AddSchedule,
    AddTrigger,
    AnswerTask,
    ChangeSchedule,
    Schedule,
    StrategyEffect,
    SubmitTask,
    Task,
    Trigger,
)

from ..models import Accepted, Trace
from ..request import Request, listed, parse_list, path_segment, validate_message

REPLY_TIMEOUT = 120.0
"""Seconds that `send` waits for a reply; the turn itself goes on and can be asked for."""


def send(
    text: str,
    conversation_id: str | None = None,
    media: str | Iterable[str] = (),
    agent: str = "dialogue",
    idempotency_key: str | None = None,
) -> Request[Reply]:
    """Send a message and wait for the reply.

    Args:
        text: the message.
        conversation_id: a conversation of the caller; a new one begins without it.
        media: ids of uploads, or public addresses, that the message carries.
        agent: who answers.
        idempotency_key: the same key with the same message is answered with the first reply; one is made when absent.

    Raises:
        TimedOut: the turn has not ended yet; it goes on, and its id stands in the text.
        ServiceError: the message was refused, or its turn ended without a reply.
    """
    body = _turn_body(text, conversation_id, media, agent)
    key = idempotency_key or uuid4().hex
    path = "/api/v1/conversations/messages"
    return Request("POST", path, _parse_reply, json=body, key=key, timeout=REPLY_TIMEOUT)


def submit(
    text: str,
    conversation_id: str | None = None,
    media: str | Iterable[str] = (),
    agent: str = "dialogue",
    idempotency_key: str | None = None,
) -> Request[Accepted]:
    """Hand in a message and return once its turn is accepted; arguments as of `conversations.send`."""
    body = _turn_body(text, conversation_id, media, agent)
    return Request("POST", "/api/v1/turns", Accepted.model_validate, json=body, key=idempotency_key or uuid4().hex)


def get_turn(turn_id: str) -> Request[Turn]:
    """The state of a turn, with its reply or its problem once it has ended."""
    return Request("GET", f"/api/v1/turns/{path_segment(turn_id, 'turn_id')}", Turn.model_validate, reads=True)


def list_turns(
    conversation_id: str | None = None,
    status: TurnStatus | None = None,
    limit: int = 20,
    agent: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: str | None = None,
    helpful: bool | None = None,
    user: str | None = None,
) -> Request[tuple[Turn, ...]]:
    """The caller's turns, newest first, without their replies.

    Args:
        conversation_id: only turns of this conversation.
        status: only turns with this status.
        limit: turns at most, up to 200.
        agent: only turns of this agent.
        since: only turns whose message was taken then or later.
        until: only turns whose message was taken before that.
        before: only turns ahead of this one, by id: the last one of a page, for the next page.
        helpful: only turns whose user said that the answer was of help, or that it was not.
        user: whose turns, in place of the caller's; `*` for everybody's. For administrators.
    """
    params = {
        "limit": limit,
        "helpful": None if helpful is None else str(helpful).lower(),
        "user": user,
        "conversation_id": conversation_id,
        "status": status,
        "agent": agent,
        "since": since.isoformat() if since else None,
        "until": until.isoformat() if until else None,
        "before": before,
    }
    return Request("GET", "/api/v1/turns", parse_list(Turn, "turns"), params=params, reads=True)


def cancel_turn(turn_id: str) -> Request[Turn]:
    """Cancel a turn. Raises `TurnEnded` when it has its end already."""
    return Request("DELETE", f"/api/v1/turns/{path_segment(turn_id, 'turn_id')}", Turn.model_validate)


def rate_turn(turn_id: str, helpful: bool, remark: str = "") -> Request[Turn]:
    """Say whether an answer was of help, with a remark of up to 1,000 characters; what was said before is replaced.

    Raises:
        Conflict: the turn has not ended.
    """
    path = f"/api/v1/turns/{path_segment(turn_id, 'turn_id')}/feedback"
    return Request("PUT", path, Turn.model_validate, json={"helpful": helpful, "remark": remark})


def unrate_turn(turn_id: str) -> Request[Turn]:
    """Take back what was said about an answer."""
    return Request("DELETE", f"/api/v1/turns/{path_segment(turn_id, 'turn_id')}/feedback", Turn.model_validate)


def retry_turn(turn_id: str, idempotency_key: str | None = None) -> Request[Turn]:
    """Make a new turn of a parked or failed one, linked to it."""
    path = f"/api/v1/turns/{path_segment(turn_id, 'turn_id')}/retry"
    return Request("POST", path, Turn.model_validate, key=idempotency_key or uuid4().hex)


def trace(turn_id: str) -> Request[Trace]:
    """Every message of a turn, as spans that the services still remember."""
    return Request("GET", f"/api/v1/turns/{path_segment(turn_id, 'turn_id')}/trace", Trace.model_validate, reads=True)


def upload(content: Path | str | bytes, name: str | None = None) -> Request[Media]:
    """Upload a file.

    Args:
        content: the bytes, or the path of a file.
        name: the name to keep; the file's own when absent.

    Raises:
        OSError: the file cannot be read.
        TooLarge: over 25 MiB.
    """
    path = None if isinstance(content, bytes) else Path(content)
    size = len(content) if isinstance(content, bytes) else Path(content).stat().st_size
    if size > MAX_UPLOAD:
        raise TooLarge(f"{size} bytes; an upload may have {MAX_UPLOAD}", field="file")
    data = content if isinstance(content, bytes) else Path(content).read_bytes()
    file = (name or (path.name if path else "upload"), data)
    return Request("POST", "/api/v1/media", Media.model_validate, files={"file": file}, key=uuid4().hex, timeout=60.0)


def _turn_body(text: str, conversation_id: str | None, media: str | Iterable[str], agent: str) -> dict[str, Any]:
    body: dict[str, Any] = {"currentMessageText": text, "agent": agent}
    attached = [{"url": m} if m.startswith(("http://", "https://")) else {"mediaId": m} for m in listed(media)]
    if attached:
        body["currentMessageMedia"] = attached
    if conversation_id is not None:
        body["conversationId"] = conversation_id
    return body


def _parse_reply(body: Any) -> Reply:
    if "user_response" not in body:
        turn = Accepted.model_validate(body)
        raise TimedOut(f"turn {turn.turn_id} has not ended yet; it goes on")
    return Reply.model_validate(body)


CONVERSATIONS = "/api/v1/conversations"


def list_conversations(limit: int = 20, cursor: str | None = None) -> Request[ConversationPage]:
    """A page of the caller's conversations, newest activity first. `limit`: 1 to 100; `cursor`: `next` of the page before."""
    params = {"limit": limit, "cursor": cursor}
    return Request("GET", CONVERSATIONS, ConversationPage.model_validate, params=params, reads=True)


def get_conversation(conversation_id: str, limit: int = 50, before: int | None = None) -> Request[Conversation]:
    """A conversation with its newest `limit` messages, before sequence `before` where stated."""
    params = {"limit": limit, "before": before}
    return Request("GET", _path(conversation_id), Conversation.model_validate, params=params, reads=True)


def delete_conversation(conversation_id: str) -> Request[Deletion]:
    """Delete a conversation for good, with what was learnt from it alone; `deletion` tells when nothing is left.

    A repeat is harmless: it answers with the same deletion.
    """
    return Request("DELETE", _path(conversation_id), Deletion.model_validate, key=uuid4().hex)


def get_deletion(deletion_id: str) -> Request[Deletion]:
    """How far a deletion is, and what each service removed."""
    path = f"/api/v1/deletions/{path_segment(deletion_id, 'deletion_id')}"
    return Request("GET", path, Deletion.model_validate, reads=True)


def _path(conversation_id: str) -> str:
    return f"{CONVERSATIONS}/{path_segment(conversation_id, 'conversation_id')}"


APPROVALS = "/api/v1/approvals"


def list_approvals(status: ApprovalStatus | None = None, limit: int = 20) -> Request[tuple[Approval, ...]]:
    """The caller's approvals, newest first; an admin's are those of the tenant."""
    params = {"limit": limit, "status": status}
    return Request("GET", APPROVALS, parse_list(Approval, "approvals"), params=params, reads=True)


def get_approval(approval_id: str) -> Request[Approval]:
    """One approval: which call waits, with what, and why a person is asked."""
    return Request("GET", f"{APPROVALS}/{path_segment(approval_id, 'approval_id')}", Approval.model_validate, reads=True)


def answer_approval(
    approval_id: str, decision: Decision | str, note: str = "", scope: ApprovalScope | str = ApprovalScope.ONCE
) -> Request[Approval]:
    """Approve or refuse the call, and let its turn go on. The same answer again is harmless.

    Args:
        approval_id: the approval.
        decision: `approve` or `refuse`.
        note: at most 1000 characters said with it; of a refusal the agent is told it.
        scope: `once`, `conversation` or `rule`: what it is approved for, of what the approval's `scopes` has.

    Raises:
        ApprovalAnswered: it was answered otherwise, ran out, or its turn was cancelled.
        BadRequest: the call can be allowed once alone.
    """
    fields = {"approval_id": approval_id, "decision": decision, "note": note, "scope": scope}
    body = validate_message(AnswerApproval, fields).model_dump(mode="json", include={"decision", "note", "scope"})
    path = f"{APPROVALS}/{path_segment(approval_id, 'approval_id')}"
    return Request("POST", path, Approval.model_validate, json=body, key=uuid4().hex)


GRANTS = "/api/v1/approval-grants"


def list_grants(revoked: bool = False, limit: int = 50) -> Request[tuple[Grant, ...]]:
    """Consents that cover later calls: the caller's, newest first; an admin's are those of the tenant.

    Args:
        revoked: whether those that were taken back are listed too.
        limit: 1 to 200.
    """
    params: dict[str, str | int | list[str] | None] = {"revoked": str(revoked).lower(), "limit": limit}
    return Request("GET", GRANTS, parse_list(Grant, "grants"), params=params, reads=True)


def revoke_grant(grant_id: str) -> Request[Grant]:
    """Take a grant back: from now on its calls are asked about again. Raises `UnknownGrant`."""
    return Request("DELETE", f"{GRANTS}/{path_segment(grant_id, 'grant_id')}", Grant.model_validate)


ACTION_POLICY = "/api/v1/action-policy"


def get_action_policy(version: int | None = None) -> Request[PolicyVersion]:
    """What the tenant's agents may do because of texts that are not the user's.

    Args:
        version: an earlier version, for admins; the one in force where it is left out.
    """
    return Request("GET", ACTION_POLICY, PolicyVersion.model_validate, params={"version": version}, reads=True)


def list_action_policies(limit: int = 20, before: int | None = None) -> Request[tuple[PolicyVersion, ...]]:
    """The versions of the policy, newest first. For admins.

    Args:
        limit: 1 to 100.
        before: only versions that are lower.
    """
    params: dict[str, str | int | list[str] | None] = {"limit": limit, "before": before}
    return Request("GET", f"{ACTION_POLICY}/versions", parse_list(PolicyVersion, "versions"), params=params, reads=True)


def set_action_policy(
    replaces: int,
    rules: Iterable[ActionRule | Mapping[str, str]] = (),
    egress: Iterable[str] = (),
    approval_seconds: float | None = None,
    idempotency_key: str | None = None,
) -> Request[PolicyVersion]:
    """Set the policy, whole; what is left out is as the system comes with it. For admins.

    Args:
        replaces: number of the version that you looked at.
        rules: what becomes of calls, by `origin` and `effect`: a `ruling` of `allow`, `ask` or `refuse`.
        egress: hosts that agents may send data to unasked: `example.org`, or `*.example.org` with all below it.
        approval_seconds: seconds that an approval waits for its answer.

    Raises:
        PolicyChanged: another version is in force by now.
        BadRequest: it contradicts itself, or an entry names no host.
    """
    fields: dict[str, Any] = {"replaces": replaces, "rules": tuple(rules), "egress": tuple(listed(egress))}
    fields |= {} if approval_seconds is None else {"approval_seconds": approval_seconds}
    return _policy_request(fields, idempotency_key)


def restore_action_policy(replaces: int, version: int, idempotency_key: str | None = None) -> Request[PolicyVersion]:
    """Let an earlier version hold again, under a new number. For admins.

    Args:
        replaces: number of the version in force, as of `set_action_policy`.
        version: the one to go back to; 0 is the one that the system comes with.

    Raises:
        PolicyChanged: another version is in force by now.
        NotFound: there is no such version.
    """
    return _policy_request({"replaces": replaces, "restores": version}, idempotency_key)


def _policy_request(fields: dict[str, Any], key: str | None) -> Request[PolicyVersion]:
    body = validate_message(SetActionPolicy, fields).model_dump(mode="json", exclude_none=True)
    return Request("PUT", ACTION_POLICY, PolicyVersion.model_validate, json=body, key=key or uuid4().hex)


def submit_task(
    goal: str,
    agent: str = DEFAULT_AGENT,
    budget: TaskBudget | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
) -> Request[Accepted]:
    """Hand in a task and return once it is accepted; its id is the `turn_id` of what comes back.

    Args:
        goal: what is to be done.
        agent: whose tools and texts it has.
        budget: what may be used; 15 minutes and 100 tool calls where nothing is stated.
        idempotency_key: the same key with the same task is the same task; one is made when absent.
        dry_run: whether it ends with its plan, whose calls then stand in `progress.calls`: nothing is done.

    Raises:
        BadRequest: the goal is empty or too long.
        ServiceError: the task was refused.
    """
    order = validate_message(SubmitTask, {"goal": goal, "agent": agent, "budget": budget or TaskBudget(), "dry_run": dry_run})
    body: dict[str, Any] = order.model_dump(mode="json", exclude=set() if dry_run else {"dry_run"})
    return Request("POST", "/api/v1/tasks", Accepted.model_validate, json=body, key=idempotency_key or uuid4().hex)


def get_task(task_id: str) -> Request[Task]:
    """How far a task is, with its report once there is one."""
    return Request("GET", f"/api/v1/tasks/{path_segment(task_id, 'task_id')}", Task.model_validate, reads=True)


REPORT_TIMEOUT = 60.0
"""Seconds that a report may take as a file: a PDF is set on the way."""


def get_report(task_id: str, format: Literal["markdown", "html", "pdf"] = "markdown") -> Request[bytes]:
    """A task's report as a file.

    Args:
        task_id: the task.
        format: `markdown`, `html` for one page that needs nothing else, or `pdf`.

    Returns:
        The file's bytes; Markdown and HTML are in UTF-8.

    Raises:
        TaskNotEnded: the task goes on.
        NoReport: it ended without a report.
        ReportTooLong: as a PDF it would have too many pages.
        ServiceError: the task is not the caller's, or the file could not be made.
    """
    path = f"/api/v1/tasks/{path_segment(task_id, 'task_id')}/report"
    return Request("GET", path, bytes, params={"format": format}, reads=True, is_file=True, timeout=REPORT_TIMEOUT)


def list_tasks(status: TurnStatus | None = None, limit: int = 20) -> Request[tuple[Task, ...]]:
    """The caller's tasks, newest first, without their reports."""
    params = {"limit": limit, "status": status}
    return Request("GET", "/api/v1/tasks", parse_list(Task, "tasks"), params=params, reads=True)


def answer_task(task_id: str, answer: str, idempotency_key: str | None = None) -> Request[Task]:
    """Answer what a task asks, and let it go on.

    Args:
        task_id: the task.
        answer: in the person's own words, or one of the choices.
        idempotency_key: the same key with the same answer is taken once; one is made when absent.

    Raises:
        ServiceError: with the code `task.not_waiting` where the task asks nothing.
        BadRequest: it is none of the choices.
    """
    fields = validate_message(AnswerTask, {"task_id": task_id, "answer": answer})
    path, key = f"/api/v1/tasks/{path_segment(task_id, 'task_id')}/answer", idempotency_key or uuid4().hex
    return Request("POST", path, Task.model_validate, json={"answer": fields.answer}, key=key)


def cancel_task(task_id: str) -> Request[Task]:
    """Cancel a task. Raises `TurnEnded` when it has its end already."""
    return Request("DELETE", f"/api/v1/tasks/{path_segment(task_id, 'task_id')}", Task.model_validate)


SCHEDULES = "/api/v1/schedules"


def add_schedule(
    goal: str,
    cron: str | None = None,
    time_zone: str = "UTC",
    agent: str = DEFAULT_AGENT,
    budget: TaskBudget | None = None,
    enabled: bool = True,
    idempotency_key: str | None = None,
    on: Trigger | None = None,
) -> Request[Schedule]:
    """Let a task be started at the times of a cron expression, or whenever an event happens.

    Args:
        goal: what each run is to do; `{node}` and `{file}` in it stand for the ids of an event.
        cron: minute, hour, day of the month, month and day of the week; runs are 5 minutes apart at least.
        time_zone: the IANA name of the time zone that the expression is meant in.
        agent: whose tools and texts the runs have.
        budget: what each run may use; 15 minutes and 100 tool calls where nothing is stated.
        enabled: whether it starts runs from now on.
        idempotency_key: the same key with the same schedule is the same schedule; one is made when absent.
        on: the events that start runs, at most 12 within an hour; give them or `cron`.

    Raises:
        BadRequest: the expression, the time zone or the type is invalid, runs are too close, or there are too many schedules.
        Forbidden: changed nodes are to start runs, and you may not read them.
    """
    if (cron is None) == (on is None):
        raise BadRequest("give `cron` or `on`")
    if on is not None and time_zone != "UTC":
        raise BadRequest("a time zone belongs to `cron`", field="time_zone")
    fields = {"goal": goal, "agent": agent, "enabled": enabled, "budget": budget or TaskBudget()}
    order: AddSchedule | AddTrigger
    if on is None:
        order = validate_message(AddSchedule, {**fields, "cron": cron, "time_zone": time_zone})
    else:
        order = validate_message(AddTrigger, {**fields, "on": on})
    body = order.model_dump(mode="json", exclude_none=True)
    return Request("POST", SCHEDULES, Schedule.model_validate, json=body, key=idempotency_key or uuid4().hex)


def get_schedule(schedule_id: str) -> Request[Schedule]:
    """A schedule with its next times and its last run."""
    return Request("GET", _schedule_path(schedule_id), Schedule.model_validate, reads=True)


def list_schedules(limit: int = 50) -> Request[tuple[Schedule, ...]]:
    """The caller's schedules, oldest first. `limit`: 1 to 50."""
    return Request("GET", SCHEDULES, parse_list(Schedule, "schedules"), params={"limit": limit}, reads=True)


def change_schedule(
    schedule_id: str,
    goal: str | None = None,
    cron: str | None = None,
    time_zone: str | None = None,
    agent: str | None = None,
    budget: TaskBudget | None = None,
    enabled: bool | None = None,
    idempotency_key: str | None = None,
) -> Request[Schedule]:
    """Change a schedule; what is left out stays. It acts with the key of this request from now on.

    Args:
        schedule_id: the schedule.
        goal: what each run is to do.
        cron: new times.
        time_zone: what they are meant in.
        agent: whose tools and texts the runs have.
        budget: what each run may use.
        enabled: `False` pauses it, `True` resumes it.
        idempotency_key: the same key with the same change is made once; one is made when absent.

    Raises:
        BadRequest: nothing is to be changed, or the new times cannot be taken.
        NotFound: there is no such schedule of the caller.
    """
    given = {"goal": goal, "cron": cron, "time_zone": time_zone, "agent": agent, "budget": budget, "enabled": enabled}
    stated = {name: value for name, value in given.items() if value is not None}
    change = validate_message(ChangeSchedule, {"schedule_id": schedule_id, **stated})
    body = change.model_dump(mode="json", exclude={"schedule_id"}, exclude_unset=True)
    key = idempotency_key or uuid4().hex
    return Request("PATCH", _schedule_path(schedule_id), Schedule.model_validate, json=body, key=key)


def pause_schedule(schedule_id: str) -> Request[Schedule]:
    """Let a schedule start nothing until it is resumed; a run that has started goes on."""
    return change_schedule(schedule_id, enabled=False)


def resume_schedule(schedule_id: str) -> Request[Schedule]:
    """Let a schedule start runs again, with the rights of this request's key. Times that have passed are not made up for."""
    return change_schedule(schedule_id, enabled=True)


def remove_schedule(schedule_id: str) -> Request[Schedule]:
    """Remove a schedule; a run that it has started goes on."""
    return Request("DELETE", _schedule_path(schedule_id), Schedule.model_validate)


def _schedule_path(schedule_id: str) -> str:
    return f"{SCHEDULES}/{path_segment(schedule_id, 'schedule_id')}"


def set_task_outcome(task_id: str, accepted: bool, comment: str = "") -> Request[Task]:
    """Say whether a task's result is what was asked for. Only an accepted one is learnt from; you may say otherwise later.

    Args:
        comment: why, up to 1,000 characters.

    Raises:
        TaskNotEnded: it is still worked on.
        NoResult: there is no report to accept.
        Unavailable: memory is away; the word is kept, and is learnt from when it is said again.
    """
    body = {"accepted": accepted, "comment": comment}
    return Request("POST", f"/api/v1/tasks/{path_segment(task_id, 'task_id')}/outcome", Task.model_validate, json=body)


STRATEGIES = "/api/v1/strategies"


def list_strategies(state: StrategyState | None = None, limit: int = 50) -> Request[tuple[KeptStrategy, ...]]:
    """The caller's strategies, newest first, without their evidence.

    Args:
        state: only strategies in this state.
    """
    params = {"state": state, "limit": limit}
    return Request("GET", STRATEGIES, parse_list(KeptStrategy, "strategies"), params=params, reads=True)


def get_strategy(strategy_id: str) -> Request[KeptStrategy]:
    """One strategy, with the tasks that speak for it or against it."""
    return Request("GET", _strategy_path(strategy_id), KeptStrategy.model_validate, reads=True)


def update_strategy(
    strategy_id: str,
    goal: str | None = None,
    approach: str | None = None,
    avoid: str | None = None,
    retired: bool | None = None,
    idempotency_key: str | None = None,
) -> Request[KeptStrategy]:
    """Edit a strategy; what is not given stays. What you write is your own text from then on.

    Args:
        goal: what it is found by.
        approach: how it is done.
        avoid: what to avoid; empty for nothing.
        retired: retire it, or take that back.

    Raises:
        NotFound: there is none such.
        Conflict: it was changed meanwhile.
    """
    given = {"goal": goal, "approach": approach, "avoid": avoid, "retired": retired}
    change = validate_message(StrategyEdit, {name: value for name, value in given.items() if value is not None})
    body = change.model_dump(mode="json", exclude_none=True)
    key = idempotency_key or uuid4().hex
    return Request("PATCH", _strategy_path(strategy_id), KeptStrategy.model_validate, json=body, key=key)


def retire_strategy(strategy_id: str) -> Request[KeptStrategy]:
    """Recall a strategy no more; it is kept. A second time changes nothing."""
    return Request("DELETE", _strategy_path(strategy_id), KeptStrategy.model_validate)


def strategy_effect() -> Request[StrategyEffect]:
    """How many results were accepted with strategies, and where they were withheld."""
    return Request("GET", f"{STRATEGIES}/effect", StrategyEffect.model_validate, reads=True)


def _strategy_path(strategy_id: str) -> str:
    return f"{STRATEGIES}/{path_segment(strategy_id, 'strategy_id')}"
