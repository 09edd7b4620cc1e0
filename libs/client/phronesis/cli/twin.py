"""`phronesis twin`: a made-up twin of any size, with planted gaps and the truth about them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from . import output
from .options import Data, Key, Url

app = typer.Typer(help="Make a twin up, for tests and for trying things out.", no_args_is_help=True)


@app.callback()
def twin() -> None:
    """Make a twin up, for tests and for trying things out."""


@app.command()
def generate(
    nodes: Annotated[int, typer.Option("--nodes", help="Nodes in all: 400 or more.", metavar="N")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same twin.", metavar="S")] = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write twin.jsonl (batches) and truth.jsonl (gap questions, answered).", metavar="DIR"),
    ] = None,
    load: Annotated[bool, typer.Option("--load", help="Load it into the graph of your tenant.")] = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Make a twin of all 17 node types on three levels over two years, with gaps of all four types planted in it."""
    if out is None and not load:
        raise typer.BadParameter("say --out DIR, --load, or both")
    from phronesis.twin import generate as made_up
    from phronesis.twin import write

    try:
        made = made_up(nodes, seed)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--nodes") from error
    if out is not None:
        write(made, out)
    planted = Counter(question.type for question in made.questions if question.type)
    output.note(f"{len(made.nodes)} nodes, {len(made.relationships)} relationships, {len(made.questions)} questions")
    output.note(", ".join(f"{name}: {count}" for name, count in sorted(planted.items())))
    if load:
        from phronesis.sync import Client

        from .loading import load as post

        with Client(url, key, data) as client:
            changed = post(client, list(made.batches()), wait=False)
        output.note(", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in changed.items()))
