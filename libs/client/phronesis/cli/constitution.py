"""`phronesis constitution`: load, show, search, ladder, session, inventory, repair, backup."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from uuid import uuid4

import typer

from phronesis_contracts.constitution.lists import ConstitutionNodeFound, Inventory
from phronesis_contracts.constitution.paths import LadderClimbed, Step
from phronesis_contracts.constitution.search import HybridFound, SemanticFound
from phronesis_contracts.constitution.session import SessionStarted
from phronesis_contracts.constitution.values import ConstitutionNode

from . import output
from .output import AsJson, Data, Key, Url, Yes

if TYPE_CHECKING:
    from phronesis_contracts.constitution.maintenance import BackupDone
    from phronesis_contracts.constitution.writes import LoadNode, Relate
    from phronesis_contracts.messages import Message

    from ..constitution.files import Constitution


backup_app = typer.Typer(help="Backups of the constitutional graph: create, list, verify, restore.", no_args_is_help=True)

BackupId = Annotated[str, typer.Argument(help="Id of a backup.", metavar="ID")]


@backup_app.command()
def create(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Back the graph up, with its vectors."""
    _print_backups(_call_backup_tool({"operation": "backup"}, url, key, data), as_json)


@backup_app.command("list")
def list_backups(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """The backups that there are."""
    _print_backups(_call_backup_tool({"operation": "list"}, url, key, data), as_json)


@backup_app.command()
def verify(id: BackupId, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Whether a backup is whole; prints the word that a restore asks for."""
    found = _call_backup_tool({"operation": "verify", "backupId": id}, url, key, data)
    _print_backups(found, as_json)
    if not as_json and found.confirmation:
        output.note(f"to restore it: phronesis constitution backup restore {id} --confirm {found.confirmation}")


@backup_app.command()
def restore(
    id: BackupId,
    word: Annotated[str, typer.Option("--confirm", help="The word that `verify` prints.", metavar="WORD")],
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Have the graph again as a backup has it; what was made since is removed."""
    output.sure(f"Replace the constitutional graph of your tenant by the backup {id}?", yes)
    found = _call_backup_tool({"operation": "restore", "backupId": id, "confirmation": word}, url, key, data)
    if as_json:
        output.as_json(found)
        return
    output.out(
        f"{found.restored_nodes} nodes, {found.restored_relationships} relationships and {found.restored_embeddings} vectors "
        f"restored, {found.removed_nodes} nodes removed"
    )


def _call_backup_tool(given: dict[str, Any], url: str | None, key: str | None, data: Path | None) -> BackupDone:
    from phronesis_contracts.constitution.maintenance import BACKUP_RESTORE_TOOL, BackupDone

    from ..sync import Client

    with Client(url, key, data) as client:
        return BackupDone.model_validate(client.tools.call(BACKUP_RESTORE_TOOL.name, given, idempotency_key=uuid4().hex))


def _print_backups(found: BackupDone, as_json: bool) -> None:
    if as_json:
        output.as_json(found)
        return
    rows = (
        (
            each.id,
            f"{each.created_at:%Y-%m-%d %H:%M}",
            str(each.nodes),
            str(each.relationships),
            str(each.embeddings),
            str(each.bytes),
        )
        for each in found.backups
    )
    output.table(("ID", "MADE", "NODES", "RELATIONSHIPS", "VECTORS", "BYTES"), rows)


if TYPE_CHECKING:
    Out = TypeVar("Out", bound=Message)

app = typer.Typer(help="Values, goals, work and insight as one graph: load, look, search, back up.", no_args_is_help=True)
app.add_typer(backup_app, name="backup")

NodeArgument = Annotated[str, typer.Argument(help="Id of a node.", metavar="ID")]


@app.command()
def load(
    file: Annotated[
        Path | None,
        typer.Argument(help="A YAML or JSON file of nodes and relationships.", metavar="FILE", exists=True, dir_okay=False),
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="The 45 nodes of a small research institute.")] = False,
    size: Annotated[
        int | None, typer.Option("--size", help="A made-up graph of so many nodes: 45 or more.", metavar="N")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same graph.", metavar="S")] = 1,
    clear: Annotated[bool, typer.Option("--clear", help="Remove for good what is there before.")] = False,
    embed: Annotated[bool, typer.Option(help="Have all texts embedded now, and not those of low priority at night.")] = True,
    yes: Yes = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Load a constitution into the graph of your tenant; the same again changes nothing."""
    if (file is not None) + sample + (size is not None) != 1:
        raise typer.BadParameter("say a FILE, --sample, or --size N")
    if clear:
        output.sure("Remove the whole constitutional graph of your tenant for good?", yes)
    from ..constitution.loading import clear_all, embed_all, load_all
    from ..sync import Client

    nodes, relationships = _choose(file, size, seed)
    with Client(url, key, data) as client:
        if clear:
            output.note(f"removed: {clear_all(client)}")
        ids, changed = load_all(client, nodes, relationships)
        output.note(", ".join(f"{name}: {count}" for name, count in changed.items()))
        if embed:
            done = embed_all(client, ids)
            output.note(", ".join(f"{name}: {count}" for name, count in done.items()))


def _choose(file: Path | None, size: int | None, seed: int) -> tuple[Iterable[LoadNode], Iterable[Relate]]:
    from ..constitution.files import Unreadable, read

    if size is not None:
        from datetime import UTC, datetime

        try:
            made = output.samples("institute").generate(size, seed, datetime.now(UTC).date())
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--size") from error
        return made.nodes(), made.relationships()
    if file is None:
        found: Constitution = output.samples("institute").sample()
    else:
        try:
            found = read(file)
        except (Unreadable, OSError) as error:
            raise typer.BadParameter(str(error), param_hint="FILE") from error
    return found.nodes, found.relationships


@app.command()
def show(id: NodeArgument, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """One node in full, with its relationships."""
    from phronesis_contracts.constitution.lists import GET_NODE_TOOL

    found = ask(GET_NODE_TOOL.name, GET_NODE_TOOL.rpc.output, {"id": id, "includeRelationships": True}, url, key, data)
    output.as_json(found) if as_json else show_node(found)


@app.command()
def search(
    text: Annotated[str, typer.Argument(help="What to look for.")],
    anchor: Annotated[
        str | None, typer.Option("--anchor", help="Search by meaning and structure around a node.", metavar="ID")
    ] = None,
    layers: Annotated[list[str] | None, typer.Option("--layer", help="Only this layer; may be given again.")] = None,
    types: Annotated[list[str] | None, typer.Option("--type", help="Only this type; may be given again.")] = None,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=50)] = 10,
    floor: Annotated[float | None, typer.Option("--min", help="Least cosine.", min=0, max=1)] = None,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Find nodes by meaning; around an anchor, by meaning and structure."""
    from phronesis_contracts.constitution.search import HYBRID_SEARCH_TOOL, SEMANTIC_SEARCH_TOOL

    given: dict[str, Any] = {"query": text, "topK": limit, "layers": layers or [], "types": types or []}
    if floor is not None:
        given["minSimilarity"] = floor
    if anchor is None:
        by_meaning = ask(SEMANTIC_SEARCH_TOOL.name, SEMANTIC_SEARCH_TOOL.rpc.output, given, url, key, data)
        output.as_json(by_meaning) if as_json else show_hits(by_meaning)
        return
    given["anchorNodeId"] = anchor
    around = ask(HYBRID_SEARCH_TOOL.name, HYBRID_SEARCH_TOOL.rpc.output, given, url, key, data)
    output.as_json(around) if as_json else show_hybrid_hits(around)


@app.command()
def ladder(id: NodeArgument, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """What a goal serves: the goals and visions above it."""
    from phronesis_contracts.constitution.paths import CLIMB_LADDER_TOOL

    found = ask(CLIMB_LADDER_TOOL.name, CLIMB_LADDER_TOOL.rpc.output, {"id": id}, url, key, data)
    output.as_json(found) if as_json else show_ladder(found)


@app.command()
def session(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """What an agent's session begins with, and its tokens."""
    from phronesis_contracts.constitution.session import START_SESSION_TOOL

    found = ask(START_SESSION_TOOL.name, START_SESSION_TOOL.rpc.output, {}, url, key, data)
    output.as_json(found) if as_json else show_session(found)


@app.command()
def inventory(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Types, relationships and indexes, with counts."""
    from phronesis_contracts.constitution.lists import INVENTORY_TOOL

    found = ask(INVENTORY_TOOL.name, INVENTORY_TOOL.rpc.output, {}, url, key, data)
    output.as_json(found) if as_json else show_inventory(found)


@app.command()
def repair(
    text: Annotated[str, typer.Argument(help="Words that the graph should have an answer to.")],
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Back up, make the vectors whole, and see that they are; it stops at the first step that fails."""
    from ..constitution import repair as repairing
    from ..sync import Client

    with Client(url, key, data) as client:
        for step in repairing.repair(client.tools, text):
            output.out(f"{step.name}: {step.said}")
    if not step.good:
        output.note("error: stopped at this step; nothing after it was done")
        raise typer.Exit(output.FAILURE)


def ask(name: str, answer: type[Out], given: dict[str, Any], url: str | None, key: str | None, data: Path | None) -> Out:
    """Call a tool that changes nothing, and parse its answer."""
    from ..sync import Client

    with Client(url, key, data) as client:
        return answer.model_validate(client.tools.call(name, given))


_FIRST_FIELDS = ("id", "type", "layer", "title", "status", "summary", "description")


def show_node(found: ConstitutionNodeFound) -> None:
    """A node, field by field, and what joins it."""
    fields = found.node.model_dump(mode="json", by_alias=True)
    order = [*(name for name in _FIRST_FIELDS if name in fields), *(name for name in fields if name not in _FIRST_FIELDS)]
    output.table(("FIELD", "VALUE"), ((name, _format_value(fields[name])) for name in order))
    if found.relationships:
        output.out()
        rows = [(link.from_id, link.type, link.to_id) for link in found.relationships]
        output.table(("FROM", "RELATIONSHIP", "TO"), rows)


def show_hits(found: SemanticFound) -> None:
    """What was found by meaning."""
    rows = ((f"{hit.score:.3f}", *_node_columns(hit.node)) for hit in found.results)
    output.table(("COSINE", "TYPE", "ID", "TITLE"), rows)
    _note_results(found.stats.total_results, found.stats.token_estimate, found.warnings)
    if not found.results:
        output.note("nothing reaches the least cosine; ask for less with --min")


def show_hybrid_hits(found: HybridFound) -> None:
    """What was found by meaning and structure, with the way there."""
    rows = (
        (
            f"{hit.final_score:.3f}",
            f"{hit.structural_score:.2f}",
            f"{hit.semantic_score:.3f}",
            *_node_columns(hit.node),
            _format_path(hit.path or ()),
        )
        for hit in found.results
    )
    output.table(("SCORE", "STRUCTURE", "COSINE", "TYPE", "ID", "TITLE", "PATH"), rows)
    _note_results(found.stats.total_results, found.stats.token_estimate, tuple(f"without {part}" for part in found.degraded))


def show_ladder(found: LadderClimbed) -> None:
    """A ladder, the goal first."""
    for step, rung in enumerate(found.ladder):
        output.out(f"{'  ' * step}{rung.title} ({rung.type} {rung.id})")
    output.note(f"depth {found.depth}")


def show_session(found: SessionStarted) -> None:
    """What a session begins with."""
    rows = [_node_columns(each) for each in (*found.foundation, *found.vision)]
    output.table(("TYPE", "ID", "TITLE"), rows)
    if found.workload is not None:
        capacity = found.workload.capacity
        output.out(f"\nWorkload: {capacity.zone}, {capacity.scheduled_hours:g} of {capacity.available_hours:g} hours")
        for each in found.workload.recommendations:
            output.out(f"  {each}")
    stats = found.stats
    output.note(
        f"{stats.total_nodes} nodes, {stats.total_tokens} tokens (foundation {stats.foundation_tokens}, vision "
        f"{stats.vision_tokens}, workload {stats.workload_tokens}), {stats.load_time:.0f} ms"
    )
    for said in (*found.warnings, *(f"left out: {part}" for part in found.left_out)):
        output.note(said)


def show_inventory(found: Inventory) -> None:
    """The types and relationships of a graph."""
    output.table(
        ("LAYER", "TYPE", "COUNT", "EMBEDDED"),
        ((each.layer.value, each.type, str(each.count), each.tier or "never") for each in found.types),
    )
    output.out()
    joined = ((each.type, str(each.count), "" if each.declared else "undeclared") for each in found.relationship_types)
    output.table(("RELATIONSHIP", "COUNT", ""), joined)
    output.out()
    indexes = ((each.name, each.type, each.state, f"{each.population_percent:g} %") for each in found.indexes)
    output.table(("INDEX", "TYPE", "STATE", "FILLED"), indexes)
    output.note(f"{found.total_nodes} nodes, {found.total_relationships} relationships")


def _node_columns(each: ConstitutionNode) -> tuple[str, str, str]:
    return each.type, each.id, each.title


def _format_path(path: Iterable[Step]) -> str:
    return " ".join(
        step.node_id
        if step.relationship is None
        else f"-{step.relationship}-> {step.node_id}"
        if step.direction == "out"
        else f"<-{step.relationship}- {step.node_id}"
        for step in path
    )


def _note_results(results: int, tokens: int, warnings: Iterable[str]) -> None:
    output.note(f"{results} results, {tokens} tokens")
    for each in warnings:
        output.note(each)


def _format_value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "; ".join(_format_value(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_format_value(each)}" for name, each in value.items())
    return str(value)
