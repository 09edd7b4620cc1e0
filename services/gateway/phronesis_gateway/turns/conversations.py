"""The routes of a person's own records: conversations, approvals with the policy of actions, strategies, the profile."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import Response

from phronesis_bus import Bus, ask
from phronesis_contracts import BadRequest, Nothing
from phronesis_contracts.approvals import (
    ACTION_POLICY_GET,
    ACTION_POLICY_LIST,
    ACTION_POLICY_SET,
    APPROVAL_ANSWER,
    APPROVAL_GET,
    APPROVAL_LIST,
    GRANT_LIST,
    GRANT_REVOKE,
    MAX_HOSTS,
    MAX_NOTE,
    AnswerApproval,
    Approval,
    ApprovalRef,
    Approvals,
    ApprovalScope,
    ApprovalStatus,
    Decision,
    GetActionPolicy,
    Grant,
    GrantRef,
    Grants,
    ListApprovals,
    ListGrants,
    ListPolicyVersions,
    PolicyVersion,
    PolicyVersions,
    SetActionPolicy,
)
from phronesis_contracts.deletions import (
    FORGET_SOURCE,
    GET_SOURCE_FORGETTING,
    LIST_SOURCE_FORGETTINGS,
    PREVIEW_SOURCE,
    DeleteConversation,
    Deletion,
    DeletionRef,
    ForgetSource,
    ListSourceForgettings,
    PreviewSource,
    SourceForgetting,
    SourceForgettingRef,
    SourceForgettings,
    SourcePreview,
)
from phronesis_contracts.episodes import (
    GET_STRATEGY,
    LIST_STRATEGIES,
    RETIRE_STRATEGY,
    UPDATE_STRATEGY,
    KeptStrategies,
    KeptStrategy,
    ListStrategies,
    StrategyEdit,
    StrategyRef,
    StrategyState,
    UpdateStrategy,
)
from phronesis_contracts.memory import (
    PROFILE_DELETE,
    PROFILE_GET,
    PROFILE_PUT,
    PROFILE_UPDATE,
    DeleteProfile,
    Profile,
    ProfileChanged,
    UpdateProfile,
)
from phronesis_contracts.orchestrator import (
    CONVERSATION_DELETE,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    DELETION_GET,
    Conversation,
    ConversationPage,
    ConversationRef,
    ListConversations,
)
from phronesis_contracts.origins import TRUSTED
from phronesis_contracts.tasks import STRATEGY_EFFECT, StrategyEffect

from ..auth.authentication import Authenticator, Caller, IdempotencyKey, authenticated_route, scope_idempotency_key
from ..http.requests import ProfileGiven, require_field
from ..http.responses import ID_FORM, PROBLEMS, json_response, refusals, route_responses

ConversationId = Annotated[str, Path(description="The conversation's id."), ID_FORM]
ForgettingId = Annotated[str, Path(description="The forgetting's id."), ID_FORM]
DeletionId = Annotated[str, Path(description="The deletion's id."), ID_FORM]
CONVERSATIONS = "/api/v1/conversations"
DELETIONS, FORGETTINGS = "/api/v1/deletions", "/api/v1/forgettings"
_CURSOR = "`next` of the page before, as it came. Good for the caller it was made for; anything else is a 400."


_SOURCES: dict[str, dict[str, JsonValue]] = {
    "document": {"type": "string"},
    "conversation_id": {"type": "string"},
    "origin": {"type": "object", "properties": {"kind": {"not": {"enum": [kind.value for kind in sorted(TRUSTED)]}}}},
}


class SourceGiven(ForgetSource, defer_build=False):  # a body of a route: FastAPI wants it complete
    """A source to forget with all that came of it: a document, a conversation or an origin, one of the three."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"document": "invoice.pdf"}],
            "anyOf": [
                {"required": [name], "properties": {other: form if other == name else {"type": "null"} for other in _SOURCES}}
                for name, form in _SOURCES.items()
            ],
        }
    )


def conversations_router(authenticator: Authenticator, bus: Bus) -> APIRouter:
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["conversations"])

    @routes.get(CONVERSATIONS, responses=route_responses(ConversationPage))
    async def list_conversations(
        who: Caller,
        limit: Annotated[int, Query(ge=1, le=100, description="Conversations of a page.")] = 20,
        cursor: Annotated[
            str | None, Query(max_length=200, description=_CURSOR, json_schema_extra={"format": "cursor"})
        ] = None,
        text: Annotated[
            str,
            Query(max_length=200, description="Only conversations in which one message holds each of these words."),
        ] = "",
    ) -> Response:
        """List your conversations.

        The caller's, newest activity first. `next` is absent on the last page. A page with a `text` looks through 200
        conversations at most, and `next` goes on behind them.
        """
        wanted = ListConversations(limit=limit, cursor=cursor, text=text)
        return json_response(await ask(bus, who, CONVERSATION_LIST, wanted))

    @routes.get(CONVERSATIONS + "/{id}", responses=route_responses(Conversation))
    async def get_conversation(
        id: ConversationId,
        who: Caller,
        limit: Annotated[int, Query(ge=1, le=200, description="Messages at most.")] = 50,
        before: Annotated[int | None, Query(ge=0, le=2**62, description="Only messages whose `seq` is lower.")] = None,
        turns: Annotated[bool, Query(description="Whether the turns of these messages are wanted too, with replies.")] = False,
    ) -> Response:
        """Get a conversation with its messages.

        The newest messages, or with `before` those ahead of it; the oldest first.
        """
        wanted = ConversationRef(conversation_id=id, limit=limit, before=before, turns=turns)
        return json_response(await ask(bus, who, CONVERSATION_GET, wanted))

    @routes.delete(CONVERSATIONS + "/{id}", status_code=202, responses=route_responses(Deletion, 202))
    async def delete_conversation(id: ConversationId, who: Caller) -> Response:
        """Delete a conversation for good.

        What was learnt from it alone goes too. It is out of sight when this returns, and every service removes its part after
        that, as the deletion tells. A second time answers with the first deletion.
        """
        deletion = await ask(bus, who, CONVERSATION_DELETE, DeleteConversation(conversation_id=id))
        return json_response(deletion, 202, {"Location": f"{DELETIONS}/{deletion.deletion_id}"})

    @routes.get(DELETIONS + "/{id}", responses=route_responses(Deletion))
    async def get_deletion(id: DeletionId, who: Caller) -> Response:
        """See how far a deletion is.

        With what each service has removed so far: how many of what.
        """
        return json_response(await ask(bus, who, DELETION_GET, DeletionRef(deletion_id=id)))

    @routes.post(
        FORGETTINGS,
        status_code=202,
        responses=route_responses(SourceForgetting, 202) | {200: route_responses(SourcePreview)[200]} | refusals(404, 409),
    )
    async def forget_source(
        given: SourceGiven,
        who: Caller,
        key: IdempotencyKey,
        dry_run: Annotated[bool, Query(description="Only tell what would go, and forget nothing.")] = False,
        limit: Annotated[int, Query(ge=1, le=200, description="Things on a page of the preview.")] = 50,
        offset: Annotated[int, Query(ge=0, le=100_000, description="Things of the preview that are passed over.")] = 0,
    ) -> Response:
        """Forget a source.

        A document, a conversation as far as it has come, or an origin, with all that was formed of it: facts, notes,
        episodes, strategies, memories that agents kept, passages, the texts of turns that read it, and the files. What you
        said in your own words stays, unless you said it in the conversation that goes. The texts of turns are gone when this
        returns; the rest follows, whatever is restarted. With `dry_run` the answer is a preview, a 200, and nothing is
        forgotten.
        """
        source = given.model_dump()
        if dry_run:
            return json_response(await ask(bus, who, PREVIEW_SOURCE, PreviewSource(**source, limit=limit, offset=offset)))
        begun = await ask(bus, who, FORGET_SOURCE, ForgetSource(**source), key=scope_idempotency_key(who, key))
        return json_response(begun, 202, {"Location": f"{FORGETTINGS}/{begun.forgetting_id}"})

    @routes.get(FORGETTINGS, responses=route_responses(SourceForgettings))
    async def list_forgettings(
        who: Caller, limit: Annotated[int, Query(ge=1, le=200, description="Forgettings at most.")] = 50
    ) -> Response:
        """List your forgettings of sources.

        The newest first.
        """
        return json_response(await ask(bus, who, LIST_SOURCE_FORGETTINGS, ListSourceForgettings(limit=limit)))

    @routes.get(FORGETTINGS + "/{id}", responses=route_responses(SourceForgetting))
    async def get_forgetting(id: ForgettingId, who: Caller) -> Response:
        """See how far the forgetting of a source is.

        Once it is complete, this is its proof.
        """
        return json_response(await ask(bus, who, GET_SOURCE_FORGETTING, SourceForgettingRef(forgetting_id=id)))

    return routes


ApprovalId = Annotated[str, Path(description="The approval's id."), ID_FORM]
GrantId = Annotated[str, Path(description="The grant's id."), ID_FORM]
APPROVALS, GRANTS, ACTION_POLICY = "/api/v1/approvals", "/api/v1/approval-grants", "/api/v1/action-policy"


class AnswerGiven(BaseModel):
    """A person's answer."""

    model_config = ConfigDict(extra="forbid")

    decision: Decision
    """Whether the call may be made."""
    scope: ApprovalScope = ApprovalScope.ONCE
    """What the consent is for: `once`, or later calls like it too, as far as the approval's `scopes` has that."""
    note: str = Field(default="", max_length=MAX_NOTE)
    """What to say with it, up to 1,000 characters; after a refusal the agent is told it."""


def approvals_router(authenticator: Authenticator, bus: Bus) -> APIRouter:
    """The routes. No other face has them: who calls by MCP or on the bus is a program, and answers nothing."""
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["approvals"])

    @routes.get(APPROVALS, responses=route_responses(Approvals))
    async def list_approvals(
        who: Caller,
        status: Annotated[ApprovalStatus | None, Query(description="Only approvals with this status.")] = None,
        limit: Annotated[int, Query(ge=1, le=200, description="Approvals at most.")] = 20,
    ) -> Response:
        """List approvals.

        The caller's, newest first; an administrator sees those of the tenant.
        """
        return json_response(await ask(bus, who, APPROVAL_LIST, ListApprovals(status=status, limit=limit)))

    @routes.get(APPROVALS + "/{id}", responses=route_responses(Approval))
    async def get_approval(id: ApprovalId, who: Caller) -> Response:
        """Get an approval.

        Which call waits, with what, and why a person is asked.
        """
        return json_response(await ask(bus, who, APPROVAL_GET, ApprovalRef(approval_id=id)))

    @routes.post(APPROVALS + "/{id}", responses=route_responses(Approval))
    async def answer_approval(id: ApprovalId, given: AnswerGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Approve or refuse a call.

        Its turn goes on. The same answer again changes nothing, and another one is a 409. With a `scope` that the approval's
        `scopes` has, later calls of the tool are allowed too, as long as they depend on the same kinds of origins and name the
        same hosts.
        """
        answer = AnswerApproval(approval_id=id, decision=given.decision, scope=given.scope, note=given.note)
        return json_response(await ask(bus, who, APPROVAL_ANSWER, answer, key=scope_idempotency_key(who, key)))

    @routes.get(GRANTS, responses=route_responses(Grants))
    async def list_approval_grants(
        who: Caller,
        revoked: Annotated[bool, Query(description="Whether those that were taken back are listed too.")] = False,
        limit: Annotated[int, Query(ge=1, le=200, description="Grants at most.")] = 50,
    ) -> Response:
        """List grants.

        Consents that cover later calls. The caller's, newest first; an administrator sees those of the tenant.
        """
        return json_response(await ask(bus, who, GRANT_LIST, ListGrants(revoked=revoked, limit=limit)))

    @routes.delete(GRANTS + "/{id}", responses=route_responses(Grant))
    async def revoke_approval_grant(id: GrantId, who: Caller) -> Response:
        """Take a grant back.

        From now on its calls are asked about again; what it let through is done. A second time changes nothing.
        """
        return json_response(await ask(bus, who, GRANT_REVOKE, GrantRef(grant_id=id)))

    return routes


_EFFECTIVE: JsonValue = {"properties": {"effect": {"not": {"const": "read"}}}}
_WHOLE: dict[str, JsonValue] = {"properties": {"restores": {"type": "null"}, "rules": {"items": _EFFECTIVE}}}
_RESTORED: dict[str, JsonValue] = {"properties": {"rules": {"maxItems": 0}, "egress": {"maxItems": 0}}}


class ActionPolicyGiven(SetActionPolicy, defer_build=False):  # a body of a route: FastAPI wants it complete
    """A policy of actions, whole."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"anyOf": [_WHOLE, _RESTORED]})

    egress: tuple[Annotated[str, Field(json_schema_extra={"format": "host-below"})], ...] = Field(
        default=(), max_length=MAX_HOSTS
    )


def action_policy_router(authenticator: Authenticator, bus: Bus) -> APIRouter:
    """The routes. No other face has them: no agent reads what holds it back, or changes it."""
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["approvals"])

    @routes.get(ACTION_POLICY, responses=route_responses(PolicyVersion) | refusals(404))
    async def get_action_policy(
        who: Caller,
        version: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="An earlier version; for administrators.")] = None,
    ) -> Response:
        """Get the policy of actions.

        What the tenant's agents may do because of texts that are not the user's. Version 0 is the one that the system comes
        with.
        """
        return json_response(await ask(bus, who, ACTION_POLICY_GET, GetActionPolicy(version=version)))

    @routes.put(ACTION_POLICY, responses=route_responses(PolicyVersion) | refusals(404))
    async def set_action_policy(given: ActionPolicyGiven, who: Caller, key: IdempotencyKey) -> Response:
        """Set the policy of actions.

        Whole: what is left out is as the system comes with it. `replaces` is the version that you looked at, and another one by
        now is a 409. With `restores` alone an earlier version holds again, under a new number. For administrators.
        """
        return json_response(await ask(bus, who, ACTION_POLICY_SET, given, key=scope_idempotency_key(who, key)))

    @routes.get(ACTION_POLICY + "/versions", responses=route_responses(PolicyVersions))
    async def list_action_policy_versions(
        who: Caller,
        limit: Annotated[int, Query(ge=1, le=100, description="Versions at most.")] = 20,
        before: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only versions that are lower.")] = None,
    ) -> Response:
        """List the versions of the policy of actions.

        Newest first, with who set them and when. For administrators.
        """
        return json_response(await ask(bus, who, ACTION_POLICY_LIST, ListPolicyVersions(limit=limit, before=before)))

    return routes


StrategyId = Annotated[str, Path(description="The strategy's id."), ID_FORM]
STRATEGIES = "/api/v1/strategies"


class StrategyChange(StrategyEdit, defer_build=False):  # a body of a route: FastAPI wants it complete
    """What is to change of a strategy, one part at least; what is not given stays."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"anyOf": [require_field(name) for name in ("goal", "approach", "avoid", "retired")]}
    )


def strategies_router(authenticator: Authenticator, bus: Bus) -> APIRouter:
    """The routes. No other face has them: what a task may learn from is for its user to say."""
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["tasks"])

    @routes.get(STRATEGIES, responses=route_responses(KeptStrategies))
    async def list_strategies(
        who: Caller,
        state: Annotated[StrategyState | None, Query(description="Only strategies in this state.")] = None,
        limit: Annotated[int, Query(ge=1, le=200, description="Strategies at most.")] = 50,
    ) -> Response:
        """List your strategies.

        How tasks of yours were done whose results were accepted, newest first, without their evidence.
        """
        return json_response(await ask(bus, who, LIST_STRATEGIES, ListStrategies(state=state, limit=limit)))

    @routes.get(STRATEGIES + "/effect", responses=route_responses(StrategyEffect))
    async def get_strategy_effect(who: Caller) -> Response:
        """See what strategies are worth.

        How many results were accepted of your tasks that had strategies, and of those that these were withheld from: a share of
        all goals, each of which stays in it. The intervals are Wilson's, of 95 %; while they overlap, no difference is shown.
        """
        return json_response(await ask(bus, who, STRATEGY_EFFECT, Nothing()))

    @routes.get(STRATEGIES + "/{id}", responses=route_responses(KeptStrategy))
    async def get_strategy(id: StrategyId, who: Caller) -> Response:
        """Get a strategy.

        What it needs, and the tasks that speak for it or against it.
        """
        return json_response(await ask(bus, who, GET_STRATEGY, StrategyRef(strategy_id=id)))

    @routes.patch(STRATEGIES + "/{id}", responses=route_responses(KeptStrategy) | refusals(409))
    async def update_strategy(id: StrategyId, given: StrategyChange, who: Caller, key: IdempotencyKey) -> Response:
        """Edit a strategy.

        What you write is your own text from then on. Its evidence stays, marked as older than the edit. A change by somebody
        else meanwhile is a 409.
        """
        change = UpdateStrategy(strategy_id=id, **given.model_dump())
        return json_response(await ask(bus, who, UPDATE_STRATEGY, change, key=scope_idempotency_key(who, key)))

    @routes.delete(STRATEGIES + "/{id}", responses=route_responses(KeptStrategy))
    async def retire_strategy(id: StrategyId, who: Caller) -> Response:
        """Retire a strategy.

        It is kept, and recalled no more. A second time changes nothing; `retired: false` takes it back.
        """
        return json_response(await ask(bus, who, RETIRE_STRATEGY, StrategyRef(strategy_id=id)))

    return routes


PROFILE = "/api/v1/profile"
MERGE_PATCH = "application/merge-patch+json"
_ETAG = re.compile(r'"([0-9]{1,18})"')
_IF_MATCH = r'^("[0-9]{1,18}"|\*)$'
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {**route_responses(Profile)[200], "headers": {"ETag": {"description": "The version.", "schema": {"type": "string"}}}}
}


async def _version(
    request: Request,
    _: Annotated[
        str | None,
        Header(
            alias="If-Match",
            pattern=_IF_MATCH,
            json_schema_extra={"format": "entity-tag"},
            description="The `ETag` of the version to change; another one by now is a 412.",
        ),
    ] = None,
) -> int | None:
    given = request.headers.getlist("if-match")
    if not given or given == ["*"]:
        return None
    found = _ETAG.fullmatch(given[0])
    if len(given) > 1 or found is None:
        raise BadRequest("give one ETag as it came, or *", field="If-Match")
    return int(found[1])


Version = Annotated[int | None, Depends(_version)]
"""The version that the caller wants to change, where it states one."""


def profile_router(authenticator: Authenticator, bus: Bus) -> APIRouter:
    routes = APIRouter(route_class=authenticated_route(authenticator), responses=PROBLEMS, tags=["profile"])

    @routes.get(PROFILE, responses=_ANSWER)
    async def get_profile(who: Caller) -> Response:
        """Get your profile.

        What is known of the caller; empty for a new user. The `ETag` names the version.
        """
        return _profile_response(await ask(bus, who, PROFILE_GET, Nothing()))

    @routes.put(PROFILE, responses=_ANSWER | refusals(412))
    async def put_profile(given: ProfileGiven, who: Caller, version: Version, key: IdempotencyKey) -> Response:
        """Replace your profile.

        With `If-Match` only where it still has that version.
        """
        wanted = Profile(profile=given.profile, version=version)
        return _profile_response(await _await_change(ask(bus, who, PROFILE_PUT, wanted, key=scope_idempotency_key(who, key))))

    @routes.patch(PROFILE, responses=_ANSWER | refusals(412))
    async def update_profile(
        given: Annotated[ProfileGiven, Body(media_type=MERGE_PATCH)], who: Caller, version: Version, key: IdempotencyKey
    ) -> Response:
        """Correct your profile.

        By a JSON merge patch (RFC 7396): members replace, and null removes. With `If-Match` only where it still has that
        version.
        """
        wanted = UpdateProfile(patch=given.profile, version=version)
        return _profile_response(
            await _await_change(ask(bus, who, PROFILE_UPDATE, wanted, key=scope_idempotency_key(who, key)))
        )

    @routes.delete(PROFILE, responses=_ANSWER | refusals(412))
    async def delete_profile(who: Caller, version: Version, key: IdempotencyKey) -> Response:
        """Delete your profile.

        A second time changes nothing. With `If-Match` only where it still has that version.
        """
        return _profile_response(
            await _await_change(
                ask(bus, who, PROFILE_DELETE, DeleteProfile(version=version), key=scope_idempotency_key(who, key))
            )
        )

    return routes


async def _await_change(answer: Any) -> Profile:
    try:
        changed: Profile = await answer
    except BadRequest as error:
        error.field = "profile" if error.field == "patch" else error.field
        raise
    except ProfileChanged as error:
        error.field = "If-Match"
        raise
    return changed


def _profile_response(profile: Profile) -> Response:
    return json_response(profile, headers={"ETag": f'"{profile.version or 0}"'})
