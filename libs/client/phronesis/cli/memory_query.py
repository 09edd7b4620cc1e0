"""`phronesis memory query`: what agents ask a memory while they work."""

from __future__ import annotations

from typing import Annotated

import typer

from . import output
from .options import AsJson, Data, Key, Url

app = typer.Typer()

SHOWN = 300
"""Characters of a text that a list shows."""


@app.command()
def query(
    operation: Annotated[str, typer.Argument(help="episodes, context, style or failures.", metavar="OPERATION")],
    text: Annotated[str, typer.Argument(help="What to look for.", metavar="TEXT")],
    limit: Annotated[int, typer.Option(help="How many to show at most.", min=1, max=20)] = 5,
    as_json: AsJson = False,
    url: Url = None,
    key: Key = None,
    data: Data = None,
) -> None:
    """Find past turns, what is known, how you write, or errors of tools."""
    from phronesis.sync import Client

    with Client(url, key, data) as client:
        found = client.memory.query(operation, text, limit)
    if as_json:
        output.as_json(found)
        return
    for number, hit in enumerate(found.results, 1):
        when = f", {hit.when:%Y-%m-%d %H:%M}" if hit.when else ""
        said = " ".join(hit.text.split())
        output.out(f"{number}. {hit.source}{when} (score {hit.score:.2f})")
        output.out(f"   {said if len(said) <= SHOWN else said[: SHOWN - 1] + '…'}")
    if found.error:
        output.note(f"[{found.error}]")
    if not found.results and not found.error:
        output.note("nothing found")
