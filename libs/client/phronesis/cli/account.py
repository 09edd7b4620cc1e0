"""`phronesis keys`, `user`, `retention`, `profile`, `usage`, `limits` and `replay`."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_args

import typer

from phronesis_contracts.ledger import Part

from . import output
from .output import Commands, Stack, Yes

if TYPE_CHECKING:
    from phronesis_contracts.answers import Replayed, ReplaySide
    from phronesis_contracts.deletions import Erasure, Retention, UserPreview
    from phronesis_contracts.ledger import Limits
    from phronesis_contracts.memory import Profile

    from ..models import KeyInfo, NewBusKey


keys_app = Commands(help="Keys of the gateway: create, list, revoke.", no_args_is_help=True)


class For(StrEnum):
    """What a key opens."""

    HTTP = "http"
    BUS = "bus"


@keys_app.stack_command()
def create(
    stack: Stack,
    tenant: Annotated[str, typer.Option(help="Whose data it opens.")],
    user: Annotated[str, typer.Option(help="For whom it acts.")],
    role: Annotated[str, typer.Option(help="What it may do: owner, admin, member or reader.")] = "member",
    agent: Annotated[
        list[str],
        typer.Option("--agent", help="Agent that a member or a reader may act as, noor by default; may be given again."),
    ] = [],  # noqa: B006
    department: Annotated[str | None, typer.Option(help="The user's department.")] = None,
    ministry: Annotated[str | None, typer.Option(help="The user's ministry.")] = None,
    what: Annotated[For, typer.Option("--for", help="What it opens: the gateway, or the bus to an outside system.")] = For.HTTP,
    days: Annotated[
        int | None, typer.Option(help="Days after which it ends; of a key of the bus 90 unless stated, 366 at most.", min=1)
    ] = None,
    scope: Annotated[
        list[str], typer.Option("--scope", help="act_for_users for a program with users of its own; may be given again.")
    ] = [],  # noqa: B006
    tool: Annotated[
        list[str], typer.Option("--tool", help="A tool that it may call, and it opens nothing else; may be given again.")
    ] = [],  # noqa: B006
) -> None:
    """Make a key and print it, alone, on stdout. It cannot be shown again, and does not outlive yours."""
    from phronesis_contracts import Agent, BadRequest, Role
    from phronesis_contracts.principal import describe_rights, is_old_role

    if is_old_role(role) and not agent:
        output.note(f"--role {role} is deprecated; use --role member --agent {role}")
        role, agent = Role.MEMBER.value, [role]
    if role not in set(Role):
        raise BadRequest(f"the roles are {', '.join(Role)}", field="role")
    if unknown := sorted(set(agent) - set(Agent)):
        raise BadRequest(f"there is no agent {unknown[0]}; the agents are {', '.join(Agent)}", field="agents")
    with stack.client() as client:
        if what is For.BUS:
            if tool:
                raise BadRequest("a key of the bus is narrowed by its role and agents alone", field="tools")
            for_bus = client.keys.create_for_bus(tenant, user, Role(role), department, ministry, days or 90, agent)
            made: KeyInfo = for_bus
            shown = _snippet(for_bus)
        else:
            for_http = client.keys.create(tenant, user, Role(role), department, ministry, scope, agent, tool, days)
            made, shown = for_http, for_http.key
    output.note(f"key {made.id} for {made.user} of {made.tenant} as {describe_rights(made.role, made.agents)}")
    if not stack.as_json(made):
        output.out(shown)


def _snippet(made: NewBusKey) -> str:
    return f"""\
import nats

TENANT, USER = {made.tenant!r}, {made.user!r}
HEADERS = {{"Phronesis-Principal": {made.token!r}}}

broker = await nats.connect(
    {list(made.servers)!r},
    user={made.nats_user!r},
    password={made.nats_password!r},
    inbox_prefix={made.inbox!r},
)"""


@keys_app.stack_command("list", json=False)
def list_keys(stack: Stack) -> None:
    """The keys there are, without their secrets."""
    from phronesis_contracts.principal import describe_rights

    with stack.client() as client:
        found = client.keys.list()
    rows = [(k.id, k.tenant, k.user, describe_rights(k.role, k.agents), "bus" if k.bus else "http", _state(k)) for k in found]
    output.table(("KEY", "TENANT", "USER", "ROLE", "FOR", "STATE"), rows)


def _state(key: KeyInfo) -> str:
    # The gateway ends a key whose time is over by revoking it as of then.
    if key.expires_at is not None and key.expires_at <= (key.revoked_at or datetime.now(UTC)):
        return "expired"
    if key.revoked_at is not None:
        return "revoked"
    return "good" if key.expires_at is None else f"good until {key.expires_at:%Y-%m-%d}"


@keys_app.stack_command(json=False)
def revoke(stack: Stack, id: Annotated[str, typer.Argument(help="Id of the key, as `keys list` shows it.")]) -> None:
    """Revoke a key; its turns end, and an outside system that came in with it is put out."""
    with stack.client() as client:
        client.keys.revoke(id)
    output.note(f"key {id} is revoked")


user_app = Commands(help="Users: erase all that is held of one, with a proof.", no_args_is_help=True)
_PAUSE = 0.5
_PATIENCE = 600.0
"""Seconds that `--wait` waits at most; the erasure goes on after it."""


@user_app.stack_command()
def erase(
    stack: Stack,
    user: Annotated[str, typer.Argument(help="The user's name, or your program's own name for the user.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be erased.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until nothing is left.")] = False,
    yes: Yes = False,
) -> None:
    """Erase all that is held of a user of your tenant, in every store, and print the proof. Their keys end."""
    from phronesis_contracts.deletions import DeletionState

    with stack.client() as client:
        if dry_run:
            stack.show(client.users.preview_erasure(user), _print_preview)
            return
        output.sure(f"Erase all that is held of {user} for good?", yes)
        found = client.users.erase(user)
        end = time.monotonic() + _PATIENCE
        while wait and found.state is DeletionState.PENDING and time.monotonic() < end:
            time.sleep(_PAUSE)
            found = client.users.erasure(found.erasure_id)
    stack.show(found, _print_erasure)
    if wait and found.state is DeletionState.PENDING:
        output.note("the erasure is still going on")
        raise typer.Exit(output.FAILURE)


@user_app.stack_command()
def erasure(stack: Stack, id: Annotated[str, typer.Argument(help="Id of the erasure.")]) -> None:
    """Show how far an erasure is; once it is complete, its proof."""
    with stack.client() as client:
        stack.show(client.users.erasure(id), _print_erasure)


@user_app.stack_command(json=False)
def erasures(stack: Stack) -> None:
    """List the erasures of your tenant, the newest first."""
    with stack.client() as client:
        rows = [
            (one.erasure_id, one.user, one.state.value, f"{one.requested_at:%Y-%m-%d %H:%M}", one.requested_by)
            for one in client.users.erasures()
        ]
    output.table(("ERASURE", "USER", "STATE", "ASKED FOR (UTC)", "BY"), rows)


def _print_preview(found: UserPreview) -> None:
    output.counts("erases", found.held, 8)
    output.counts("keeps", found.kept, 8)


def _print_erasure(found: Erasure) -> None:
    output.out(f"erasure  {found.erasure_id}")
    output.out(f"user     {found.user}")
    output.out(f"state    {found.state}")
    output.counts("before", found.before, 8)
    if found.completed_at is not None:
        output.counts("after", found.after, 8)
        output.counts("kept", found.kept, 8)
        output.out(f"done     {found.completed_at:%Y-%m-%d %H:%M:%S} UTC, asked for by {found.requested_by}")
        output.out(f"sha256   {found.digest}")


retention_app = Commands(help="For how many days your tenant keeps what: show, set.")
_Days = Annotated[int | None, typer.Option(help="Days; left out, it is kept for ever.", min=1, max=36_500)]


@retention_app.default_command()
@retention_app.stack_command("show")
def show_retention(stack: Stack) -> None:
    """For how many days your tenant keeps what."""
    with stack.client() as client:
        stack.show(client.retention.get(), _print_retention)


@retention_app.stack_command("set")
def set_retention(
    stack: Stack,
    messages: _Days = None,
    episodes: _Days = None,
    media: _Days = None,
    conversations: _Days = None,
    traces: _Days = None,
    yes: Yes = False,
) -> None:
    """Set for how many days your tenant keeps what; what you leave out is kept for ever. What is older is deleted for good."""
    given = {"messages": messages, "episodes": episodes, "media": media, "conversations": conversations, "traces": traces}
    told = ", ".join(f"{name} older than {days} days" for name, days in given.items() if days is not None)
    if told:
        output.sure(f"Delete {told}, from now on, for good?", yes)
    with stack.client() as client:
        stack.show(client.retention.set(**given), _print_retention)


def _print_retention(found: Retention) -> None:
    for name, days in found.model_dump().items():
        output.out(f"{name:<14} {'for ever' if days is None else f'{days} days'}")


profile_app = Commands(help="What is known of you: show, set, delete.")


@profile_app.default_command()
@profile_app.stack_command()
def show(stack: Stack) -> None:
    """What is known of you."""
    with stack.client() as client:
        stack.show(client.profile.get(), _print_profile)


@profile_app.stack_command("set")
def set_fields(
    stack: Stack,
    fields: Annotated[
        list[str],
        typer.Argument(help="A value is JSON, or else text; null removes; a dot in a key goes inside.", metavar="KEY=VALUE..."),
    ],
) -> None:
    """Correct what is known of you."""
    patch = _patch(fields)
    with stack.client() as client:
        stack.show(client.profile.update(patch), _print_profile)


@profile_app.stack_command(json=False)
def delete(stack: Stack, yes: Yes = False) -> None:
    """Delete all that is known of you in the profile."""
    output.sure("Delete your profile for good?", yes)
    with stack.client() as client:
        client.profile.delete()
    output.note("the profile is deleted")


def _patch(fields: list[str]) -> dict[str, Any]:
    from phronesis_contracts import BadRequest

    patch: dict[str, Any] = {}
    for field in fields:
        path, equals, text = field.partition("=")
        *outer, last = path.split(".")
        if not equals or not all([*outer, last]):
            raise BadRequest(f"{field!r} is not KEY=VALUE", field="fields")
        inside = patch
        for name in outer:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                raise BadRequest(f"{path!r} goes inside a value that is set too", field="fields")
        inside[last] = _value(text)
    return patch


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError:
        return text


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _print_profile(found: Profile) -> None:
    for name, value in found.profile.items():
        output.out(f"{name} = {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    if not found.profile:
        output.note("nothing is known of you")


limits = Commands(help="Limits of tokens and money: list, set, remove.")
Day = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], metavar="DAY", help="In UTC, as 2026-01-31.")]
Agent = Annotated[str | None, typer.Option(help="Only this agent's calls.", metavar="NAME")]
User = Annotated[str | None, typer.Option(help="Only this user's calls.", metavar="NAME")]
Every = Annotated[str, typer.Argument(help="day or month.", metavar="WINDOW")]


def usage(
    stack: Stack,
    since: Day = None,
    until: Day = None,
    by: Annotated[list[str] | None, typer.Option(help="agent, user, model, day or purpose; may be given again.")] = None,
    agent: Agent = None,
    user: User = None,
) -> None:
    """What model calls used, this month: your own, for an admin the tenant's."""
    parts = tuple(part for part in get_args(Part) if part in (by or ("agent", "model")))
    if unknown := [part for part in by or () if part not in get_args(Part)]:
        raise typer.BadParameter(f"not known: {', '.join(unknown)}", param_hint="--by")
    with stack.client() as client:
        found = client.ledger.usage(since and since.date(), until and until.date(), parts, agent, user)
    if stack.as_json(found):
        return
    heads = (*(part.upper() for part in parts), "CALLS", "INPUT", "OUTPUT", "USD", "UNPRICED")
    rows = [
        (
            *(str(getattr(one, part)) for part in parts),
            *(str(number) for number in (one.calls, one.input_tokens, one.output_tokens)),
            f"{one.cost_usd:.6f}",
            str(one.unpriced),
        )
        for one in found.sums
    ]
    output.table(heads, rows)


@limits.default_command(json=True)
def show_limits(stack: Stack) -> None:
    """Limits of tokens and money, with what is used of each."""
    with stack.client() as client:
        stack.show(client.ledger.limits(), _limits)


@limits.stack_command("set")
def set_limit(
    stack: Stack,
    window: Every,
    tokens: Annotated[int | None, typer.Option(help="Input and output together.", min=0)] = None,
    usd: Annotated[float | None, typer.Option(help="US dollars.", min=0)] = None,
    agent: Agent = None,
    user: User = None,
) -> None:
    """Set a limit for the tenant, an agent or a user."""
    if tokens is None and usd is None:
        raise typer.BadParameter("state --tokens or --usd")
    with stack.client() as client:
        stack.show(client.ledger.set_limit(window, tokens, usd, agent, user), _limits)  # type: ignore[arg-type]  # checked there


@limits.stack_command("remove")
def remove_limit(stack: Stack, window: Every, agent: Agent = None, user: User = None) -> None:
    """Remove a limit."""
    with stack.client() as client:
        stack.show(client.ledger.set_limit(window, agent=agent, user=user), _limits)  # type: ignore[arg-type]  # checked there


def replay(
    stack: Stack,
    turn: Annotated[str, typer.Argument(help="Id of a turn.")],
    with_instructions: Annotated[
        int | None, typer.Option(help="Number of the release to run it with; 0 is the platform's own.", min=0, metavar="V")
    ] = None,
) -> None:
    """Run a turn again on its recorded tool results, and show the difference."""
    with stack.client() as client:
        found = client.turns.replay(turn, with_instructions)
    stack.show(found, _replayed)


def _replayed(found: Replayed) -> None:
    output.out("the same" if found.same else "different")
    if found.problem:
        output.out(f"the replay ended with {found.problem}")
    if found.diff:
        output.out(found.diff)
    for name in ("release", "model_calls", "input_tokens", "output_tokens", "cost_usd", "confidence"):
        before, after = getattr(found.before, name), getattr(found.after, name)
        output.out(
            f"{name.replace('_', ' '):<14}{before} -> {after}" if before != after else f"{name.replace('_', ' '):<14}{after}"
        )
    _calls(found.before, found.after)
    for call in found.unrecorded:
        output.out(f"not in the record: {call.name}")
    if found.forgotten:
        output.out(f"forgotten since: {', '.join(found.forgotten)}")
    if found.changed:
        output.out(f"changed since: {', '.join(found.changed)}")


def _calls(before: ReplaySide, after: ReplaySide) -> None:
    for sign, ours, theirs in (("-", before, after), ("+", after, before)):
        for call in ours.tool_calls:
            if call not in theirs.tool_calls:
                output.out(f"{sign} {call}")
        for gap in ours.gaps:
            if gap not in theirs.gaps:
                output.out(f"{sign} gap {gap}")


def _limits(found: Limits) -> None:
    rows = [
        (
            *(one.window, one.agent or "all", one.user or "all"),
            f"{one.used_tokens} of {one.tokens}" if one.tokens is not None else "-",
            f"{one.used_usd:.6f} of {one.usd:g}" if one.usd is not None else "-",
        )
        for one in found.limits
    ]
    output.table(("WINDOW", "AGENT", "USER", "TOKENS", "USD"), rows)
