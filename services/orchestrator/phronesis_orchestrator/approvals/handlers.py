"""All that the orchestrator answers about approvals and a tenant's policy of actions; approvals run out, policies are kept."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

from phronesis_bus import Bus, Call, News, follow, serve
from phronesis_contracts import BadRequest, Forbidden, ServiceError
from phronesis_contracts.approvals import (
    ACTION_POLICY_GET,
    ACTION_POLICY_LIST,
    ACTION_POLICY_SET,
    APPROVAL_ANSWER,
    APPROVAL_GET,
    APPROVAL_LIST,
    GRANT_LIST,
    GRANT_REVOKE,
    POLICY_SET,
    ActionPolicy,
    ActionRule,
    AnswerApproval,
    Approval,
    ApprovalRef,
    Approvals,
    GetActionPolicy,
    Grant,
    GrantRef,
    Grants,
    ListApprovals,
    ListGrants,
    ListPolicyVersions,
    PolicySet,
    PolicyVersion,
    PolicyVersions,
    SetActionPolicy,
)
from phronesis_contracts.tools import Effect

from .egress import check_entry
from .store import PostgresApprovals, PostgresPolicies

log = logging.getLogger(__name__)

SWEEP = 5.0
"""Seconds between two looks for approvals that ran out."""
_BATCH = 100
"""Turns that one look puts back."""


class ApprovalHandlers:
    """The handlers. `resumed`: called when a turn goes on, to wake a worker and the relay of news."""

    def __init__(self, approvals: PostgresApprovals, resumed: Callable[[], None]) -> None:
        self._approvals = approvals
        self._resumed = resumed

    async def approval(self, call: Call, request: ApprovalRef) -> Approval:
        return await self._approvals.approval(call.who, request)

    async def approvals(self, call: Call, request: ListApprovals) -> Approvals:
        return await self._approvals.approvals(call.who, request)

    async def answer(self, call: Call, request: AnswerApproval) -> Approval:
        """Take a person's answer: the turn goes on. Raises `Forbidden` where it is an outside system that answers."""
        if call.who.inbox is not None:
            raise Forbidden("an approval is answered by a person, and by no system on the bus")
        approval = await self._approvals.answer(call.who, request)
        self._resumed()
        return approval

    async def grants(self, call: Call, request: ListGrants) -> Grants:
        return await self._approvals.grants(call.who, request)

    async def revoke(self, call: Call, request: GrantRef) -> Grant:
        """Take a grant back. Raises `Forbidden` where it is an outside system that asks."""
        if call.who.inbox is not None:
            raise Forbidden("a grant is taken back by a person, and by no system on the bus")
        return await self._approvals.revoke(call.who, request)


async def serve_approvals(bus: Bus, approvals: PostgresApprovals, resumed: Callable[[], None]) -> None:
    """Wire them to the bus. `resumed`: called when a turn goes on, to wake a worker and the relay of news."""
    handlers = ApprovalHandlers(approvals, resumed)
    await serve(bus, APPROVAL_GET, handlers.approval)
    await serve(bus, APPROVAL_LIST, handlers.approvals)
    await serve(bus, APPROVAL_ANSWER, handlers.answer)
    await serve(bus, GRANT_LIST, handlers.grants)
    await serve(bus, GRANT_REVOKE, handlers.revoke)
    start_sweep(bus, "approvals", partial(approvals.expire, _BATCH), resumed, SWEEP)


def start_sweep(bus: Bus, what: str, look: Callable[[], Awaitable[int]], found: Callable[[], None], seconds: float) -> None:
    """Look for what is due until the bus stops: again at once where there was something, else after a while.

    Args:
        what: its name, for the log.
        look: deals with what is due, and says how much it was.
        found: called when there was something.
        seconds: the while.
    """

    async def sweep() -> None:
        while True:
            due = 0
            try:
                due = await look()
            except ServiceError as error:
                log.warning("%s could not be looked through: %s", what, error.code)
            except Exception:
                # The loop may not end: nothing would be due any more.
                log.exception("looking through %s failed", what)
            if due:
                found()
            else:
                await asyncio.sleep(seconds)

    sweeping = asyncio.create_task(sweep(), name=f"{what}-sweep")

    async def stop() -> None:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)

    bus.on_stop(stop)


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
