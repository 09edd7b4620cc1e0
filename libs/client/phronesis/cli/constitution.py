"""`phronesis constitution`: load, show, search, ladder, session, inventory, repair, backup."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phronesis_contracts.constitution.lists import ConstitutionNodeFound, Inventory
from phronesis_contracts.constitution.paths import LadderClimbed, Step
from phronesis_contracts.constitution.search import HybridFound, SemanticFound
from phronesis_contracts.constitution.session import SessionStarted
from phronesis_contracts.constitution.values import ConstitutionNode

from . import output
from .output import Commands, Stack, Yes

if TYPE_CHECKING:
    from phronesis_contracts.constitution.maintenance import BackupDone
    from phronesis_contracts.constitution.writes import LoadNode, Relate

    from ..constitution.files import Constitution


backup_app = Commands(help="Backups of the constitutional graph: create, list, verify, restore.", no_args_is_help=True)

BackupId = Annotated[str, typer.Argument(help="Id of a backup.", metavar="ID")]


@backup_app.stack_command()
def create(stack: Stack) -> None:
    """Back the graph up, with its vectors."""
    stack.show(_call_backup_tool(stack, "backup"), _print_backups)


@backup_app.stack_command("list")
def list_backups(stack: Stack) -> None:
    """The backups that there are."""
    stack.show(_call_backup_tool(stack, "list"), _print_backups)


@backup_app.stack_command()
def verify(stack: Stack, id: BackupId) -> None:
    """Whether a backup is whole; prints the word that a restore asks for."""
    found = _call_backup_tool(stack, "verify", backupId=id)
    stack.show(found, _print_backups)
    if not stack.json and found.confirmation:
        output.note(f"to restore it: phronesis constitution backup restore {id} --confirm {found.confirmation}")


@backup_app.stack_command()
def restore(
    stack: Stack,
    id: BackupId,
    word: Annotated[str, typer.Option("--confirm", help="The word that `verify` prints.", metavar="WORD")],
    yes: Yes = False,
) -> None:
    """Have the graph again as a backup has it; what was made since is removed."""
    output.sure(f"Replace the constitutional graph of your tenant by the backup {id}?", yes)
    found = _call_backup_tool(stack, "restore", backupId=id, confirmation=word)
    if stack.as_json(found):
        return
    output.out(
        f"{found.restored_nodes} nodes, {found.restored_relationships} relationships and {found.restored_embeddings} vectors "
        f"restored, {found.removed_nodes} nodes removed"
    )


def _call_backup_tool(stack: Stack, operation: str, **given: str) -> BackupDone:
    from phronesis_contracts.constitution.maintenance import BACKUP_RESTORE_TOOL

    return stack.call(BACKUP_RESTORE_TOOL, {"operation": operation, **given}, writes=True)


def _print_backups(found: BackupDone) -> None:
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


app = Commands(help="Values, goals, work and insight as one graph: load, look, search, back up.", no_args_is_help=True)
app.add_typer(backup_app, name="backup")

NodeArgument = Annotated[str, typer.Argument(help="Id of a node.", metavar="ID")]


@app.stack_command(json=False)
def load(
    stack: Stack,
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
) -> None:
    """Load a constitution into the graph of your tenant; the same again changes nothing."""
    if (file is not None) + sample + (size is not None) != 1:
        raise typer.BadParameter("say a FILE, --sample, or --size N")
    if clear:
        output.sure("Remove the whole constitutional graph of your tenant for good?", yes)
    from ..constitution.loading import clear_all, embed_all, load_all

    nodes, relationships = _choose(file, size, seed)
    with stack.client() as client:
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


@app.stack_command()
def show(stack: Stack, id: NodeArgument) -> None:
    """One node in full, with its relationships."""
    from phronesis_contracts.constitution.lists import GET_NODE_TOOL

    stack.show(stack.call(GET_NODE_TOOL, {"id": id, "includeRelationships": True}), show_node)


@app.stack_command()
def search(
    stack: Stack,
    text: Annotated[str, typer.Argument(help="What to look for.")],
    anchor: Annotated[
        str | None, typer.Option("--anchor", help="Search by meaning and structure around a node.", metavar="ID")
    ] = None,
    layers: Annotated[list[str] | None, typer.Option("--layer", help="Only this layer; may be given again.")] = None,
    types: Annotated[list[str] | None, typer.Option("--type", help="Only this type; may be given again.")] = None,
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=50)] = 10,
    floor: Annotated[float | None, typer.Option("--min", help="Least cosine.", min=0, max=1)] = None,
) -> None:
    """Find nodes by meaning; around an anchor, by meaning and structure."""
    from phronesis_contracts.constitution.search import HYBRID_SEARCH_TOOL, SEMANTIC_SEARCH_TOOL

    given: dict[str, Any] = {"query": text, "topK": limit, "layers": layers or [], "types": types or []}
    if floor is not None:
        given["minSimilarity"] = floor
    if anchor is None:
        stack.show(stack.call(SEMANTIC_SEARCH_TOOL, given), show_hits)
        return
    given["anchorNodeId"] = anchor
    stack.show(stack.call(HYBRID_SEARCH_TOOL, given), show_hybrid_hits)


@app.stack_command()
def ladder(stack: Stack, id: NodeArgument) -> None:
    """What a goal serves: the goals and visions above it."""
    from phronesis_contracts.constitution.paths import CLIMB_LADDER_TOOL

    stack.show(stack.call(CLIMB_LADDER_TOOL, {"id": id}), show_ladder)


@app.stack_command()
def session(stack: Stack) -> None:
    """What an agent's session begins with, and its tokens."""
    from phronesis_contracts.constitution.session import START_SESSION_TOOL

    stack.show(stack.call(START_SESSION_TOOL, {}), show_session)


@app.stack_command()
def inventory(stack: Stack) -> None:
    """Types, relationships and indexes, with counts."""
    from phronesis_contracts.constitution.lists import INVENTORY_TOOL

    stack.show(stack.call(INVENTORY_TOOL, {}), show_inventory)


@app.stack_command(json=False)
def repair(stack: Stack, text: Annotated[str, typer.Argument(help="Words that the graph should have an answer to.")]) -> None:
    """Back up, make the vectors whole, and see that they are; it stops at the first step that fails."""
    from ..constitution import loading as repairing

    with stack.client() as client:
        for step in repairing.repair(client.tools, text):
            output.out(f"{step.name}: {step.said}")
    if not step.good:
        output.note("error: stopped at this step; nothing after it was done")
        raise typer.Exit(output.FAILURE)


_FIRST_FIELDS = ("id", "type", "layer", "title", "status", "summary", "description")


def show_node(found: ConstitutionNodeFound) -> None:
    fields = found.node.model_dump(mode="json", by_alias=True)
    order = [*(name for name in _FIRST_FIELDS if name in fields), *(name for name in fields if name not in _FIRST_FIELDS)]
    output.table(("FIELD", "VALUE"), ((name, _format_value(fields[name])) for name in order))
    if found.relationships:
        output.out()
        rows = [(link.from_id, link.type, link.to_id) for link in found.relationships]
        output.table(("FROM", "RELATIONSHIP", "TO"), rows)


def show_hits(found: SemanticFound) -> None:
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
    for step, rung in enumerate(found.ladder):
        output.out(f"{'  ' * step}{rung.title} ({rung.type} {rung.id})")
    output.note(f"depth {found.depth}")


def show_session(found: SessionStarted) -> None:
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
