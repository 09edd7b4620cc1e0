"""`phronesis conversations`: list, show and delete; `phronesis approvals`: what agents in them wait for; `phronesis policy`."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import output
from .output import Commands, Stack, Yes

if TYPE_CHECKING:
    from phronesis_contracts.approvals import Approval, PolicyVersion
    from phronesis_contracts.deletions import Deletion


app = Commands(help="Your conversations: list, show, delete.")

PAUSE = 0.3
"""Seconds between two looks at a deletion."""
PATIENCE = 120.0
"""Seconds that `--wait` waits at most; the deletion goes on after it."""
Id = Annotated[str, typer.Argument(help="Id of a conversation.")]


@app.default_command()
@app.stack_command("list")
def list_conversations(
    stack: Stack,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=100)] = 20,
    cursor: Annotated[str | None, typer.Option(help="`next` of the page before.", metavar="CURSOR")] = None,
) -> None:
    """Your conversations, newest activity first."""
    with stack.client() as client:
        page = client.conversations.list(limit, cursor)
    if stack.as_json(page):
        return
    rows = [
        (c.conversation_id, f"{c.updated_at:%Y-%m-%d %H:%M:%S}", str(c.turns), c.agent, c.title) for c in page.conversations
    ]
    output.table(("CONVERSATION", "ACTIVE (UTC)", "TURNS", "AGENT", "TITLE"), rows)
    if page.next:
        output.note(f"more: --cursor {page.next}")


@app.stack_command()
def show(
    stack: Stack,
    conversation: Id,
    limit: Annotated[int, typer.Option(help="How many messages to show at most.", min=1, max=200)] = 50,
    before: Annotated[int | None, typer.Option(help="Only messages before this one.", min=0)] = None,
) -> None:
    """The messages of a conversation, oldest first."""
    with stack.client() as client:
        found = client.conversations.get(conversation, limit, before)
    if stack.as_json(found):
        return
    output.note(f"agent {found.agent}, directive {found.directive}, begun {found.created_at:%Y-%m-%d %H:%M:%S} UTC")
    for message in found.messages:
        output.out(f"{message.seq}. {message.role}: {message.text}")


@app.stack_command()
def delete(
    stack: Stack,
    conversation: Id,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until nothing is left.")] = False,
    yes: Yes = False,
) -> None:
    """Delete a conversation for good, with what was learnt from it alone."""
    from phronesis_contracts.deletions import DeletionState

    output.sure(f"Delete conversation {conversation} for good?", yes)
    with stack.client() as client:
        deletion = client.conversations.delete(conversation)
        end = time.monotonic() + PATIENCE
        while wait and deletion.state is DeletionState.PENDING and time.monotonic() < end:
            time.sleep(PAUSE)
            deletion = client.conversations.deletion(deletion.deletion_id)
    stack.show(deletion, _print)
    if wait and deletion.state is DeletionState.PENDING:
        output.note("the deletion is still going on")
        raise typer.Exit(output.FAILURE)


def _print(deletion: Deletion) -> None:
    output.out(f"deletion  {deletion.deletion_id}")
    output.out(f"state     {deletion.state}")
    for service, counts in deletion.removed.items():
        removed = ", ".join(f"{count} {name}" for name, count in counts.items())
        output.out(f"{service}: {removed}")


approvals_app = Commands(help="What agents want you to allow: list, show, approve, refuse, and what you allowed for later.")

ApprovalId = Annotated[str, typer.Argument(help="Id of an approval.")]


class Scope(StrEnum):
    """What an approval is given for, as the contract has it."""

    ONCE = "once"
    CONVERSATION = "conversation"
    RULE = "rule"


Note = Annotated[str, typer.Option("--note", help="A word with it; of a refusal the agent is told it.", metavar="TEXT")]


@approvals_app.default_command()
@approvals_app.stack_command("list")
def list_approvals(
    stack: Stack,
    every: Annotated[bool, typer.Option("--all", help="Those that were answered too.")] = False,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=200)] = 20,
) -> None:
    """What waits for you, newest first; as an admin, what waits for anybody of the tenant."""
    from phronesis_contracts.approvals import Approvals, ApprovalStatus

    with stack.client() as client:
        found = client.approvals.list(None if every else ApprovalStatus.PENDING, limit)
    if not stack.as_json(Approvals(approvals=found)):
        rows = [(a.approval_id, a.status, f"{a.expires_at:%Y-%m-%d %H:%M}", a.user, a.reason) for a in found]
        output.table(("APPROVAL", "STATUS", "UNTIL (UTC)", "USER", "WHAT"), rows)


@approvals_app.stack_command("show")
def show_approval(stack: Stack, approval: ApprovalId) -> None:
    """What an agent wants to do, with which arguments."""
    with stack.client() as client:
        stack.show(client.approvals.get(approval), _print_approval)


@approvals_app.stack_command()
def approve(
    stack: Stack,
    approval: ApprovalId,
    note: Note = "",
    scope: Annotated[
        Scope, typer.Option("--for", help="The call alone, or later ones like it, in the conversation or in all of yours.")
    ] = Scope.ONCE,
) -> None:
    """Allow the call: it is made once, as it was shown. With --for, later calls like it are not asked about."""
    with stack.client() as client:
        stack.show(client.approvals.answer(approval, "approve", note, scope.value), _print_approval)


@approvals_app.stack_command()
def refuse(stack: Stack, approval: ApprovalId, note: Note = "") -> None:
    """Refuse the call: the agent goes on without it."""
    with stack.client() as client:
        stack.show(client.approvals.answer(approval, "refuse", note), _print_approval)


def _print_approval(approval: Approval) -> None:
    output.out(f"approval   {approval.approval_id}")
    output.out(f"status     {approval.status}")
    output.out(f"turn       {approval.turn_id}")
    output.out(f"agent      {approval.agent}, for {approval.user}")
    output.out(f"why        {approval.reason}")
    for label in approval.because:
        output.out(f"because of {label.name or label.id or 'some text'} ({label.kind})")
    output.out(f"effect     {approval.effect}{f', at {approval.host}' if approval.host else ''}")
    if len(approval.scopes) > 1:
        output.out(f"allow for  {', '.join(approval.scopes)}")
    output.out(f"until      {approval.expires_at:%Y-%m-%d %H:%M:%S} UTC")
    if approval.answered_by:
        output.out(f"answered   by {approval.answered_by}{f': {approval.note}' if approval.note else ''}")
    output.out(f"call       {approval.tool} {json.dumps(approval.arguments, ensure_ascii=False, indent=2)}")


@approvals_app.stack_command()
def grants(stack: Stack, every: Annotated[bool, typer.Option("--all", help="Those that were taken back too.")] = False) -> None:
    """What you allowed for later calls; as an admin, what anybody of the tenant did."""
    from phronesis_contracts.approvals import Grants

    with stack.client() as client:
        found = client.approvals.grants(every)
    if not stack.as_json(Grants(grants=found)):
        rows = [
            (
                *(one.grant_id, one.user, one.tool, one.conversation_id or "all", ", ".join(one.kinds), one.host or "-"),
                "in force" if one.revoked_at is None else f"revoked {one.revoked_at:%Y-%m-%d}",
            )
            for one in found
        ]
        output.table(("GRANT", "USER", "TOOL", "CONVERSATION", "BECAUSE OF", "HOST", "STATE"), rows)


@approvals_app.stack_command(json=False)
def revoke(stack: Stack, grant: Annotated[str, typer.Argument(help="Id of a grant, as `approvals grants` shows it.")]) -> None:
    """Take back what you allowed for later calls: they are asked about again."""
    with stack.client() as client:
        found = client.approvals.revoke(grant)
    output.note(f"calls of {found.tool} are asked about again")


policy_app = Commands(help="What agents may do because of texts that are not the user's: show, change, go back.")
Hosts = Annotated[list[str], typer.Argument(help="example.org, or *.example.org for all below it.", metavar="HOST...")]


@policy_app.default_command(json=True)
@policy_app.stack_command("show")
def show_policy(
    stack: Stack,
    version: Annotated[int | None, typer.Option(help="An earlier version; for admins.", min=0, metavar="N")] = None,
) -> None:
    """The policy of your tenant, by the origin of a text and the effect of a call."""
    with stack.client() as client:
        stack.show(client.action_policy.get(version), _print_policy)


@policy_app.stack_command("rule")
def set_rule(
    stack: Stack,
    origin: Annotated[str, typer.Argument(help="document, web, outside and so on, as `policy show` lists them.")],
    effect: Annotated[str, typer.Argument(help="write, outbound, message or spend.")],
    ruling: Annotated[str, typer.Argument(help="allow, ask or refuse; default for what the system comes with.")],
) -> None:
    """Say what becomes of calls with one effect that depend on texts of one origin."""
    with stack.client() as client:
        policy = client.action_policy.get().policy
        rules: list[Any] = [rule for rule in policy.rules if (rule.origin, rule.effect) != (origin, effect)]
        if ruling != "default":
            rules.append({"origin": origin, "effect": effect, "ruling": ruling})
        changed = client.action_policy.set(policy.version, rules, policy.egress, policy.approval_seconds)
    stack.show(changed, _print_policy)


@policy_app.stack_command("allow-host")
def allow_host(stack: Stack, hosts: Hosts) -> None:
    """Let agents send data to hosts without asking."""
    with stack.client() as client:
        policy = client.action_policy.get().policy
        egress = dict.fromkeys((*policy.egress, *hosts))
        changed = client.action_policy.set(policy.version, policy.rules, egress, policy.approval_seconds)
    stack.show(changed, _print_policy)


@policy_app.stack_command("remove-host")
def remove_host(stack: Stack, hosts: Hosts) -> None:
    """Ask again before agents send data to hosts."""
    from phronesis_contracts import BadRequest

    with stack.client() as client:
        policy = client.action_policy.get().policy
        if unknown := [host for host in hosts if host not in policy.egress]:
            raise BadRequest(f"{unknown[0]} is not on the list", field="egress")
        egress = [host for host in policy.egress if host not in hosts]
        changed = client.action_policy.set(policy.version, policy.rules, egress, policy.approval_seconds)
    stack.show(changed, _print_policy)


@policy_app.stack_command("wait")
def set_wait(
    stack: Stack, hours: Annotated[float, typer.Argument(help="Hours that an approval waits for its answer.", min=0.017)]
) -> None:
    """Say for how long agents wait for an answer before they go on without the call."""
    with stack.client() as client:
        policy = client.action_policy.get().policy
        changed = client.action_policy.set(policy.version, policy.rules, policy.egress, hours * 3600)
    stack.show(changed, _print_policy)


@policy_app.stack_command("versions", json=False)
def list_versions(stack: Stack) -> None:
    """The versions of the policy, newest first, with who set them. For admins."""
    with stack.client() as client:
        found = client.action_policy.versions()
    rows = [
        (
            *(str(one.policy.version), f"{one.changed_at:%Y-%m-%d %H:%M}", one.changed_by or "-"),
            *(str(len(one.policy.rules)), str(len(one.policy.egress)), "-" if one.restores is None else str(one.restores)),
        )
        for one in found
    ]
    output.table(("VERSION", "SET (UTC)", "BY", "RULES", "HOSTS", "REPEATS"), rows)


@policy_app.stack_command("restore")
def restore_policy(
    stack: Stack,
    version: Annotated[int, typer.Argument(help="The version; 0 is the one that the system comes with.", min=0, metavar="N")],
) -> None:
    """Let an earlier version hold again, under a new number. For admins."""
    with stack.client() as client:
        in_force = client.action_policy.get().policy.version
        stack.show(client.action_policy.restore(in_force, version), _print_policy)


def _print_policy(found: PolicyVersion) -> None:
    from phronesis_contracts.origins import OriginKind
    from phronesis_contracts.tools import Effect

    policy = found.policy
    by = f", set by {found.changed_by} at {found.changed_at:%Y-%m-%d %H:%M} UTC" if found.changed_at else ""
    output.out(f"version    {policy.version}{by}")
    output.out(f"approvals  wait {policy.approval_seconds / 3600:g} hours")
    output.out(f"hosts      {', '.join(policy.egress) or 'none; agents ask before they send data anywhere'}")
    effects = [effect for effect in Effect if effect is not Effect.READ]
    rows = [(kind.value, *(policy.ruling(kind, effect).value for effect in effects)) for kind in OriginKind]
    output.table(("BECAUSE OF", *(effect.value.upper() for effect in effects)), rows)
