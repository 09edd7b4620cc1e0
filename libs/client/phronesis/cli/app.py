"""The commands: what each takes. What it does stands in the modules that it imports when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import (
    approvals,
    constitution,
    conversations,
    facts,
    instructions,
    keys,
    ledger,
    local,
    mcp_servers,
    memory_query,
    output,
    profile,
    tasks,
    turns,
    twin,
)
from .options import AsJson, Data, Key, Url, Yes

app = typer.Typer(
    name="phronesis",
    help="Talk to a stack of Phronesis, and run one on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
load = typer.Typer(help="Load sample data.", no_args_is_help=True)
app.add_typer(load, name="load")
app.add_typer(turns.app, name="turns")
app.add_typer(tasks.app, name="tasks")
tasks.register(app)
app.add_typer(approvals.app, name="approvals")
app.add_typer(conversations.app, name="conversations")
app.add_typer(profile.app, name="profile")
facts.app.add_typer(memory_query.app)
app.add_typer(facts.app, name="memory")
app.add_typer(keys.app, name="keys")
app.add_typer(mcp_servers.app, name="mcp")
app.add_typer(twin.app, name="twin")
app.add_typer(constitution.app, name="constitution")
app.add_typer(instructions.app, name="instructions")
local.register(app)
ledger.register(app)

Conversation = Annotated[str | None, typer.Option("--conversation", help="A conversation to go on with.", metavar="ID")]
Files = Annotated[
    list[Path] | None,
    typer.Option("--media", help="A file to send along; may be given again.", metavar="FILE", exists=True, dir_okay=False),
]
Scope = Annotated[
    str | None, typer.Option("--scope", help="personal, departmental, ministry, global, csuite or secrets.", metavar="NAME")
]
Agent = Annotated[str, typer.Option("--agent", help="Who answers.", metavar="NAME")]


@app.command()
def ask(
    text: Annotated[str, typer.Argument(help="The message.")],
    conversation: Conversation = None,
    media: Files = None,
    agent: Agent = "dialogue",
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Ask a question and wait for the reply."""
    from phronesis.sync import Client

    from .asking import Talk

    with Client(url, key, data) as client:
        answer = Talk(client, agent, conversation).say(text, media or ())
    if as_json:
        output.as_json(answer)
    else:
        output.reply(answer)


@app.command()
def chat(
    conversation: Conversation = None, agent: Agent = "dialogue", url: Url = None, key: Key = None, data: Data = None
) -> None:
    """Talk; a line is a message. Reads from a pipe as well."""
    from phronesis.sync import Client

    from .asking import Talk, converse

    with Client(url, key, data) as client:
        code = converse(Talk(client, agent, conversation))
    raise typer.Exit(code)


@app.command()
def trace(
    turn: Annotated[str, typer.Argument(help="Id of a turn.")],
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Show every message of a turn, with times, as a tree."""
    from phronesis.sync import Client

    from .trace import show

    with Client(url, key, data) as client:
        found = client.turns.trace(turn)
    if as_json:
        output.as_json(found)
    else:
        show(found)


@app.command()
def remember(
    text: Annotated[str, typer.Argument(help="What to remember.")],
    title: Annotated[str | None, typer.Option(help="A title for it.")] = None,
    kind: Annotated[str, typer.Option(help="fact, note, episode, concept or style.")] = "fact",
    external_id: Annotated[str | None, typer.Option(help="Your own id; the same id again replaces it.", metavar="ID")] = None,
    scope: Scope = None,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Store something in your memory, or in a scope; prints its id and what became of it."""
    from phronesis.sync import Client

    from . import memory

    with Client(url, key, data) as client:
        if scope is None:
            memory.remember(client, text, title, kind, external_id)
        else:
            memory.keep(client, scope, external_id, text)


@app.command()
def recall(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=100)] = 10,
    scope: Scope = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Find what your memory holds, by meaning and by words; what a scope holds, by meaning."""
    from phronesis.sync import Client

    from . import memory

    with Client(url, key, data) as client:
        if scope is None:
            memory.recall(client, query, limit, as_json)
        else:
            memory.recall_scope(client, scope, query, limit, as_json)


@app.command()
def forget(
    ids: Annotated[list[str], typer.Argument(help="Ids, or your own external ids, of items.", metavar="ID...")],
    scope: Scope = None,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Remove items from your memory, or from a scope, for good."""
    from phronesis.sync import Client

    from . import memory

    output.sure(f"Forget {len(ids)} of {f'the scope {scope}' if scope else 'what you remember'} for good?", yes)
    with Client(url, key, data) as client:
        if scope is None:
            memory.forget(client, ids, as_json)
        else:
            memory.forget_scope(client, scope, ids, as_json)


@load.command()
def portfolio(
    wait: Annotated[bool, typer.Option(help="Stay until memory has embedded the texts.")] = True,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Load the UK government's major projects 2020-2023 into the graph; again is harmless."""
    from phronesis.portfolio import batches
    from phronesis.sync import Client

    from .loading import load

    with Client(url, key, data) as client:
        changed = load(client, batches(), wait)
    output.note(", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in changed.items()))


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    output.out(installed("phronesis"))
