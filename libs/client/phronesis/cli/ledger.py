"""`phronesis usage`, `phronesis limits` and `phronesis replay`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from phronesis_contracts.ledger import Part

from . import output
from .options import AsJson, Data, Key, Url

if TYPE_CHECKING:
    from phronesis.sync import Client
    from phronesis_contracts.ledger import Limits
    from phronesis_contracts.traces import Replayed, ReplaySide

limits = typer.Typer(help="Limits of tokens and money: list, set, remove.", invoke_without_command=True)
Day = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], metavar="DAY", help="In UTC, as 2026-01-31.")]
Agent = Annotated[str | None, typer.Option(help="Only this agent's calls.", metavar="NAME")]
User = Annotated[str | None, typer.Option(help="Only this user's calls.", metavar="NAME")]
Every = Annotated[str, typer.Argument(help="day or month.", metavar="WINDOW")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(usage)
    app.command()(replay)
    app.add_typer(limits, name="limits")


def usage(
    since: Day = None,
    until: Day = None,
    by: Annotated[list[str] | None, typer.Option(help="agent, user, model, day or purpose; may be given again.")] = None,
    agent: Agent = None,
    user: User = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """What model calls used, this month: your own, for an admin the tenant's."""
    parts = tuple(part for part in get_args(Part) if part in (by or ("agent", "model")))
    if unknown := [part for part in by or () if part not in get_args(Part)]:
        raise typer.BadParameter(f"not known: {', '.join(unknown)}", param_hint="--by")
    with _client(url, key, data) as client:
        found = client.ledger.usage(since and since.date(), until and until.date(), parts, agent, user)
    if as_json:
        output.as_json(found)
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


@limits.callback()
def show_limits(context: typer.Context, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Limits of tokens and money, with what is used of each."""
    if context.invoked_subcommand is None:
        with _client(url, key, data) as client:
            _limits(client.ledger.limits(), as_json)


@limits.command("set")
def set_limit(
    window: Every,
    tokens: Annotated[int | None, typer.Option(help="Input and output together.", min=0)] = None,
    usd: Annotated[float | None, typer.Option(help="US dollars.", min=0)] = None,
    agent: Agent = None,
    user: User = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Set a limit for the tenant, an agent or a user."""
    if tokens is None and usd is None:
        raise typer.BadParameter("state --tokens or --usd")
    with _client(url, key, data) as client:
        _limits(client.ledger.set_limit(window, tokens, usd, agent, user), as_json)  # type: ignore[arg-type]  # checked there


@limits.command("remove")
def remove_limit(
    window: Every,
    agent: Agent = None,
    user: User = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Remove a limit."""
    with _client(url, key, data) as client:
        _limits(client.ledger.set_limit(window, agent=agent, user=user), as_json)  # type: ignore[arg-type]  # checked there


def replay(
    turn: Annotated[str, typer.Argument(help="Id of a turn.")],
    with_instructions: Annotated[
        int | None, typer.Option(help="Number of the release to run it with; 0 is the platform's own.", min=0, metavar="V")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Run a turn again on its recorded tool results, and show the difference."""
    with _client(url, key, data) as client:
        found = client.turns.replay(turn, with_instructions)
    if as_json:
        output.as_json(found)
    else:
        _replayed(found)


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


def _limits(found: Limits, as_json: bool) -> None:
    if as_json:
        output.as_json(found)
        return
    rows = [
        (
            *(one.window, one.agent or "all", one.user or "all"),
            f"{one.used_tokens} of {one.tokens}" if one.tokens is not None else "-",
            f"{one.used_usd:.6f} of {one.usd:g}" if one.usd is not None else "-",
        )
        for one in found.limits
    ]
    output.table(("WINDOW", "AGENT", "USER", "TOKENS", "USD"), rows)


def _client(url: Url, key: Key, data: Data) -> Client:
    from phronesis.sync import Client

    return Client(url, key, data)
