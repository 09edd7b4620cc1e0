"""`docs/generated/services.md`: tables of every request, job, event, progress message and tool."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from phronesis_contracts import EVERYONE, Rpc, Tool
from phronesis_contracts.catalog import ASKS, EVENTS, JOBS, OUTS, RPCS, TOOLS

from .messages import Contract
from .tree import GENERATED, GENERATED_DOCS

PATH = GENERATED_DOCS / "services.md"


def documents() -> dict[Path, str]:
    """The page."""
    return {PATH: _page()}


def _page() -> str:
    return "\n".join(
        [
            "# Messages and tools",
            "",
            f"<!-- {GENERATED} -->",
            "Subjects have the form `<kind>.<tenant>.<subject>`. [The bus](../reference/bus.md) specifies how each kind is "
            "delivered, [asyncapi.yaml](asyncapi.yaml) has every field. A message has the name of its class in "
            "`libs/contracts`, of its handler's method (in snake case) and of its test.",
            "",
            "## Tools",
            "",
            *_table(
                ("tool", "subject", "risk", "agents", "input", "output", "purpose"),
                (_tool(tool) for tool in sorted(TOOLS.values(), key=lambda tool: tool.name)),
            ),
            "",
            "## Requests (`rpc`)",
            "",
            *_table(
                ("subject", "owner", "input", "output", "timeout, s", "callers"),
                (_question(rpc) for rpc in _sorted(RPCS)),
            ),
            "",
            "## Jobs (`job`)",
            "",
            *_table(
                ("subject", "owner", "input", "queue limit per tenant"),
                ((f"`{j.subject}`", j.service, _model(j.input), str(j.backlog)) for j in _sorted(JOBS)),
            ),
            "",
            "## Events (`evt`)",
            "",
            *_table(
                ("subject", "owner", "input", "followers"),
                ((f"`{e.subject}`", e.service, _model(e.input), _followers(e)) for e in _sorted(EVENTS)),
            ),
            "",
            "## Progress (`out`)",
            "",
            *_table(("subject", "owner", "input"), ((f"`{o.subject}`", o.service, _model(o.input)) for o in _sorted(OUTS))),
            "",
        ]
    )


def _sorted(table: Iterable[Any]) -> list[Any]:
    return sorted(table, key=lambda contract: contract.subject)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [_row(head), _row(tuple("---" for _ in head)), *(_row(row) for row in rows)]


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _model(model: type[Any]) -> str:
    return f"`{model.__name__}`"


def _tool(tool: Tool[Any, Any]) -> tuple[str, ...]:
    agents = "all" if tool.agents == EVERYONE else ", ".join(sorted(tool.agents)) or "administrators alone"
    risk = tool.risk.name.lower() + (", irreversible" if tool.irreversible else "")
    rpc = tool.rpc
    return (f"`{tool.name}`", f"`{rpc.subject}`", risk, agents, _model(rpc.input), _model(rpc.output), tool.description)


def _question(rpc: Rpc[Any, Any]) -> tuple[str, ...]:
    askers = ", ".join(asker for asker, asked in ASKS.items() if rpc.service in asked) or "the embedded stack"
    return (f"`{rpc.subject}`", rpc.service, _model(rpc.input), _model(rpc.output), f"{rpc.timeout:g}", askers)


def _followers(event: Contract) -> str:
    hearers = getattr(event, "hearers", ())
    followers = getattr(event, "followers", ())
    names = [*followers, *(f"{name} (every copy)" for name in hearers if name not in followers)]
    return ", ".join(names)
