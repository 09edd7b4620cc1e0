"""`phronesis constitution`: load, show, search, ladder, session, inventory, repair, backup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from . import constitution_backups, output
from .options import AsJson, Data, Key, Url, Yes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from phronesis_contracts.constitution.loading import LoadNode
    from phronesis_contracts.constitution.writes import Relate
    from phronesis_contracts.messages import Message

    Out = TypeVar("Out", bound=Message)

app = typer.Typer(help="Values, goals, work and insight as one graph: load, look, search, back up.", no_args_is_help=True)
app.add_typer(constitution_backups.app, name="backup")

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
    from phronesis.sync import Client

    from .constitution_loading import clear_all, embed_all, load_all

    nodes, relationships = _chosen(file, size, seed)
    with Client(url, key, data) as client:
        if clear:
            output.note(f"removed: {clear_all(client)}")
        ids, changed = load_all(client, nodes, relationships)
        output.note(", ".join(f"{name}: {count}" for name, count in changed.items()))
        if embed:
            done = embed_all(client, ids)
            output.note(", ".join(f"{name}: {count}" for name, count in done.items()))


def _chosen(file: Path | None, size: int | None, seed: int) -> tuple[Iterable[LoadNode], Iterable[Relate]]:
    from phronesis import constitution

    if size is not None:
        from datetime import UTC, datetime

        try:
            made = constitution.generate(size, seed, datetime.now(UTC).date())
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--size") from error
        return made.nodes(), made.relationships()
    if file is None:
        found = constitution.sample()
    else:
        try:
            found = constitution.read(file)
        except (constitution.Unreadable, OSError) as error:
            raise typer.BadParameter(str(error), param_hint="FILE") from error
    return found.nodes, found.relationships


@app.command()
def show(id: NodeArgument, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """One node in full, with its relationships."""
    from phronesis_contracts.constitution.lists import GET_NODE_TOOL

    from .constitution_views import node

    found = ask(GET_NODE_TOOL.name, GET_NODE_TOOL.rpc.output, {"id": id, "includeRelationships": True}, url, key, data)
    output.as_json(found) if as_json else node(found)


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

    from .constitution_views import hits, hybrid_hits

    given: dict[str, Any] = {"query": text, "topK": limit, "layers": layers or [], "types": types or []}
    if floor is not None:
        given["minSimilarity"] = floor
    if anchor is None:
        by_meaning = ask(SEMANTIC_SEARCH_TOOL.name, SEMANTIC_SEARCH_TOOL.rpc.output, given, url, key, data)
        output.as_json(by_meaning) if as_json else hits(by_meaning)
        return
    given["anchorNodeId"] = anchor
    around = ask(HYBRID_SEARCH_TOOL.name, HYBRID_SEARCH_TOOL.rpc.output, given, url, key, data)
    output.as_json(around) if as_json else hybrid_hits(around)


@app.command()
def ladder(id: NodeArgument, as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """What a goal serves: the goals and visions above it."""
    from phronesis_contracts.constitution.paths import CLIMB_LADDER_TOOL

    from .constitution_views import rungs

    found = ask(CLIMB_LADDER_TOOL.name, CLIMB_LADDER_TOOL.rpc.output, {"id": id}, url, key, data)
    output.as_json(found) if as_json else rungs(found)


@app.command()
def session(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """What an agent's session begins with, and its tokens."""
    from phronesis_contracts.constitution.session import START_SESSION_TOOL

    from .constitution_views import started

    found = ask(START_SESSION_TOOL.name, START_SESSION_TOOL.rpc.output, {}, url, key, data)
    output.as_json(found) if as_json else started(found)


@app.command()
def inventory(as_json: AsJson = False, url: Url = None, key: Key = None, data: Data = None) -> None:
    """Types, relationships and indexes, with counts."""
    from phronesis_contracts.constitution.lists import INVENTORY_TOOL

    from .constitution_views import counts

    found = ask(INVENTORY_TOOL.name, INVENTORY_TOOL.rpc.output, {}, url, key, data)
    output.as_json(found) if as_json else counts(found)


@app.command()
def repair(
    text: Annotated[str, typer.Argument(help="Words that the graph should have an answer to.")],
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Back up, make the vectors whole, and see that they are; it stops at the first step that fails."""
    from phronesis import repair as repairing
    from phronesis.sync import Client

    with Client(url, key, data) as client:
        for step in repairing.repair(client.tools, text):
            output.out(f"{step.name}: {step.said}")
    if not step.good:
        output.note("error: stopped at this step; nothing after it was done")
        raise typer.Exit(output.FAILURE)


def ask(name: str, answer: type[Out], given: dict[str, Any], url: str | None, key: str | None, data: Path | None) -> Out:
    """Call a tool that changes nothing, and parse its answer."""
    from phronesis.sync import Client

    with Client(url, key, data) as client:
        return answer.model_validate(client.tools.call(name, given))
