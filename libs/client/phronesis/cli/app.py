"""The commands: what each takes. What it does stands in the modules, and packages, that it imports when it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import (
    account,
    agents,
    constitution,
    conversations,
    facts,
    instructions,
    mcp_servers,
    memories,
    output,
    tasks,
    turns,
)
from .output import Commands, Stack, Yes

LOCAL_COMMANDS = {
    "up": "Start a stack on this machine.",
    "down": "Stop the stack of this machine.",
    "restart": "Restart the services of this machine one by one.",
    "status": "Show what runs, and whether it is well.",
    "doctor": "Find out why a stack does not run.",
    "rebuild": "Make vectors and links anew.",
}
OPERATIONS_COMMANDS = {
    "backup": "Write everything that a stack holds to one archive.",
    "restore": "Load a backup into empty stores.",
    "forgotten": "Write the list of what was forgotten, for the restore of an older backup.",
    "export": "Write what one tenant has to an archive.",
}


def register_packages(app: typer.Typer) -> None:
    for package, commands in (("local", LOCAL_COMMANDS), ("operations", OPERATIONS_COMMANDS)):
        for name, help_text in commands.items():
            settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
            app.command(name, help=help_text, context_settings=settings)(_delegate(package, name))
    memories.import_app.command(
        "archive", help="A tenant's archive, as `phronesis export` writes it.", context_settings=settings
    )(_delegate("operations", "import"))


def _delegate(package: str, name: str) -> Callable[[typer.Context], None]:
    def hand_on(context: typer.Context) -> None:
        try:
            cli = import_module(f"phronesis_{package}.cli")
        except ModuleNotFoundError as exc:
            if exc.name not in (f"phronesis_{package}", f"phronesis_{package}.cli"):
                raise
            output.note("error: unavailable: the packages of a stack are not installed: pip install 'phronesis[local]'")
            raise typer.Exit(output.FAILURE) from exc
        app = typer.Typer(name="phronesis", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        cli.register(app)
        result = app(args=[name, *context.args], prog_name="phronesis", standalone_mode=False)
        raise typer.Exit(result if isinstance(result, int) else 0)

    return hand_on


class ArchiveGroup(TyperGroup):
    """A group that takes a file in place of a command, and hands it to its command `archive`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """What the arguments name: a program whose memories are imported, or an archive."""
        return super().resolve_command(ctx, args if args and args[0] in self.commands else ["archive", *args])


class FilesGroup(TyperGroup):
    """A group that takes files in place of a command, and hands them to its command `files`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """What the arguments name: a command, or files and options of `files`."""
        if args and args[0] not in self.commands and (args[0].startswith("-") or Path(args[0]).suffix.lower() in FILES):
            args = ["files", *args]
        return super().resolve_command(ctx, args)


FILES = (".yaml", ".yml", ".csv")
"""Endings of files that a twin is loaded from."""
twin_app = Commands(help="Make a twin up, for tests and for trying things out.", no_args_is_help=True)


@twin_app.callback()
def twin() -> None:
    """Make a twin up, for tests and for trying things out."""


@twin_app.stack_command(json=False)
def generate(
    stack: Stack,
    nodes: Annotated[int, typer.Option("--nodes", help="Nodes in all: 400 or more.", metavar="N")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same twin.", metavar="S")] = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write twin.jsonl (batches) and truth.jsonl (gap questions, answered).", metavar="DIR"),
    ] = None,
    load: Annotated[bool, typer.Option("--load", help="Load it into the graph of your tenant.")] = False,
) -> None:
    """Make a twin of all 17 node types on three levels over two years, with gaps of all four types planted in it."""
    if out is None and not load:
        raise typer.BadParameter("say --out DIR, --load, or both")
    twins = output.samples("twin")
    try:
        made = twins.generate(nodes, seed)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--nodes") from error
    if out is not None:
        twins.write(made, out)
    planted = Counter(question.type for question in made.questions if question.type)
    output.note(f"{len(made.nodes)} nodes, {len(made.relationships)} relationships, {len(made.questions)} questions")
    output.note(", ".join(f"{name}: {count}" for name, count in sorted(planted.items())))
    if load:
        from .loading import load as post

        with stack.client() as client:
            changed = post(client, list(made.batches()))
        output.note(", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in changed.items()))


SECTIONS = {
    "Run a stack": (*LOCAL_COMMANDS, "version"),
    "Talk": (
        "ask",
        "chat",
        "task",
        "conversations",
        "turns",
        "tasks",
        "schedules",
        "strategies",
        "approvals",
        "trace",
        "replay",
    ),
    "Remember": ("memory", "import", "remember", "recall", "forget", "profile"),
    "Data": ("load", "twin", "constitution", "backup", "restore", "forgotten", "export"),
    "Agents": ("agent", "instructions", "mcp"),
    "Administer": ("keys", "user", "retention", "usage", "limits", "policy"),
}
"""The commands as the help lists them."""


class Sections(TyperGroup):
    """The commands of the program, listed by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands; what no section names comes last."""
        named = {name for names in SECTIONS.values() for name in names}
        others = tuple(name for name in self.list_commands(ctx) if name not in named)
        for title, names in (SECTIONS | {"Others": others}).items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, one.get_short_help_str(limit=90)) for name, one in found if one is not None and not one.hidden]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


app = Commands(
    name="phronesis",
    help="Talk to a stack of Phronesis, and run one on this machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=Sections,
)


@app.callback()
def phronesis(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)] = False,
) -> None:
    """Talk to a stack of Phronesis, and run one on this machine."""


load = Commands(
    help="Load a twin: your own, from files, or the sample.",
    no_args_is_help=True,
    cls=FilesGroup,
    context_settings={"ignore_unknown_options": True},
)
app.add_typer(load, name="load")
app.add_typer(turns.app, name="turns")
app.add_typer(tasks.app, name="tasks")
app.add_typer(tasks.strategies_app, name="strategies")
app.stack_command("task")(tasks.task)
app.add_typer(tasks.schedules_app, name="schedules")
app.add_typer(conversations.approvals_app, name="approvals")
app.add_typer(conversations.policy_app, name="policy")
app.add_typer(conversations.app, name="conversations")
app.add_typer(account.profile_app, name="profile")
facts.app.add_typer(facts.query_app)
facts.app.add_typer(memories.app)
app.add_typer(facts.app, name="memory")
app.add_typer(account.keys_app, name="keys")
app.add_typer(account.user_app, name="user")
app.add_typer(account.retention_app, name="retention")
app.add_typer(mcp_servers.app, name="mcp")
app.add_typer(twin_app, name="twin")
app.add_typer(constitution.app, name="constitution")
app.add_typer(instructions.app, name="instructions")
app.add_typer(agents.app, name="agent")
register_packages(app)
app.add_typer(
    memories.import_app,
    name="import",
    cls=ArchiveGroup,
    help="Take in memories of another program, or a tenant's archive.",
    no_args_is_help=True,
    context_settings={"ignore_unknown_options": True},
)
app.stack_command()(account.usage)
app.stack_command()(account.replay)
app.add_typer(account.limits, name="limits")

Conversation = Annotated[str | None, typer.Option("--conversation", help="A conversation to go on with.", metavar="ID")]
Files = Annotated[
    list[Path] | None,
    typer.Option("--media", help="A file to send along; may be given again.", metavar="FILE", exists=True, dir_okay=False),
]
Scope = Annotated[
    str | None, typer.Option("--scope", help="personal, departmental, ministry, global, csuite or secrets.", metavar="NAME")
]
Agent = Annotated[str, typer.Option("--agent", help="Who answers; `phronesis agent list` names them.", metavar="NAME")]


@app.stack_command()
def ask(
    stack: Stack,
    text: Annotated[str, typer.Argument(help="The message.")],
    conversation: Conversation = None,
    media: Files = None,
    agent: Agent = "dialogue",
) -> None:
    """Ask a question and wait for the reply."""
    from .chat import ChatSession

    with stack.client() as client:
        answer = ChatSession(client, agent, conversation).say(text, media or ())
    stack.show(answer, output.reply)


@app.stack_command(json=False)
def chat(stack: Stack, conversation: Conversation = None, agent: Agent = "dialogue") -> None:
    """Talk; a line is a message. Reads from a pipe as well."""
    from .chat import ChatSession, converse

    with stack.client() as client:
        code = converse(ChatSession(client, agent, conversation))
    raise typer.Exit(code)


@app.stack_command()
def trace(stack: Stack, turn: Annotated[str, typer.Argument(help="Id of a turn.")]) -> None:
    """Show every message of a turn, with times, as a tree."""
    from .turns import show_trace

    with stack.client() as client:
        found = client.turns.trace(turn)
    stack.show(found, show_trace)


@app.stack_command(json=False)
def remember(
    stack: Stack,
    text: Annotated[str, typer.Argument(help="What to remember.")],
    title: Annotated[str | None, typer.Option(help="A title for it.")] = None,
    kind: Annotated[str, typer.Option(help="fact, note, episode, concept or style.")] = "fact",
    external_id: Annotated[str | None, typer.Option(help="Your own id; the same id again replaces it.", metavar="ID")] = None,
    scope: Scope = None,
) -> None:
    """Store something in your memory, or in a scope; prints its id and what became of it."""
    from . import memory

    with stack.client() as client:
        if scope is None:
            memory.remember(client, text, title, kind, external_id)
        else:
            memory.keep(client, scope, external_id, text)


@app.stack_command()
def recall(
    stack: Stack,
    query: Annotated[str, typer.Argument(help="What to look for.")],
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=100)] = 10,
    scope: Scope = None,
) -> None:
    """Find what your memory holds, by meaning and by words; what a scope holds, by meaning."""
    from . import memory

    with stack.client() as client:
        if scope is None:
            stack.show(client.memory.recall(query, limit), memory.show_recalled)
        else:
            memory.recall_scope(stack, client, scope, query, limit)


@app.stack_command()
def forget(
    stack: Stack,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids, or your own external ids, of items.", metavar="[ID...]")] = None,
    scope: Scope = None,
    document: Annotated[
        str | None, typer.Option("--document", help="A file, by id or name, and all that came of it.", metavar="FILE")
    ] = None,
    conversation: Annotated[
        str | None, typer.Option("--conversation", help="A conversation, and all that came of it.", metavar="ID")
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option("--origin", help="All that came of an origin, such as `web`, or `tool:NAME`.", metavar="KIND[:ID]"),
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Only tell what of a source would go.")] = False,
    yes: Yes = False,
) -> None:
    """Remove items from your memory, or from a scope, for good; or a source with all that came of it, with a proof."""
    from . import memory

    if not ids:
        memory.forget_source(stack, document, conversation, origin, preview=preview, yes=yes)
        return
    output.sure(f"Forget {len(ids)} of {f'the scope {scope}' if scope else 'what you remember'} for good?", yes)
    with stack.client() as client:
        if scope is None:
            stack.show(client.memory.forget(ids), memory.show_forgotten)
        else:
            memory.forget_scope(stack, client, scope, ids)


@load.stack_command(json=False)
def portfolio(
    stack: Stack, wait: Annotated[bool, typer.Option(help="Stay until memory has embedded the texts.")] = True
) -> None:
    """Load the sample portfolio of government projects into the graph; loading it again changes nothing."""
    sample = output.samples("portfolio")
    from .loading import load

    with stack.client() as client:
        changed = load(client, sample.batches(), sample.TEXTS if wait else ())
    output.note(", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in changed.items()))


@load.stack_command(name="files")
def files(
    stack: Stack,
    paths: Annotated[
        list[Path],
        typer.Argument(help="An ontology (.yaml), tables (.csv), or both.", metavar="FILE...", exists=True, dir_okay=False),
    ],
    type: Annotated[str | None, typer.Option("--type", help="Node type of the one table.", metavar="TYPE")] = None,
    year: Annotated[int | None, typer.Option("--year", help="Year of rows that state none; this one by default.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, and write nothing.")] = False,
    wait: Annotated[bool, typer.Option(help="Stay until memory has embedded the texts.")] = True,
) -> None:
    """Load your own twin: `phronesis load ONTOLOGY.yaml DATA.csv ...`; loading it again changes nothing."""
    from .twin_files import load_files

    with stack.client() as client:
        result = load_files(client, paths, type, year, dry_run, wait)
    stack.as_json(result)


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    output.out(installed("phronesis"))
