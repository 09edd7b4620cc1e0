"""Options that every command shares."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[str | None, typer.Option("--url", help="Address of a gateway [env: PHRONESIS_URL].", metavar="URL")]
Key = Annotated[str | None, typer.Option("--key", help="A key of that gateway [env: PHRONESIS_KEY].", metavar="KEY")]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data directory of a local stack [env: PHRONESIS_DATA; default: ~/.phronesis].", metavar="DIR"),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether you mean it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, alone, on stdout.")]
