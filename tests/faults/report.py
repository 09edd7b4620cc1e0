"""The table as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.measure import Row
from tests.faults.model_faults import CALLS, FAULTS

_HEAD = """# Every fault, and what the client saw

Made by `python -m tests.faults`: each line is one message to `POST /api/v1/conversations/messages` of a running embedded
stack, with one thing broken, and measured. The model is a scripted server that speaks Groq's HTTP; the stores are the real
ones, with a proxy in every connection of every service. Each message needs a fact from memory.

- **client saw**: the status, and for an error the problem's `code`. Each 503 has a `Retry-After`.
- **degraded**: the parts that the reply says it was made without.
- **directive**: `new`: the model's choice for the next turn; `kept`: the earlier one stays.
- **calls**: model calls that the provider saw for this message.
- **s**: seconds until the client had its answer. **back**: seconds from the repair to the end of the next complete reply; no
  service was restarted for it.

A key that the gateway knows and an agent's instructions are cached for a minute by their readers, so a broken store behind
them is noticed later. A turn that cannot be accepted within ten seconds is refused; sent again with the same
`Idempotency-Key` it is accepted once.

Time limits: 8 s for the router call with all its attempts, 20 s for the final call, 3 s for retrieval, 1 s for each stage of
it, 60 s for a turn. A call is tried three times, with jitter; a `Retry-After` is honoured if it fits into the limit. After five
failures in a row a model's endpoint is not called for 15 s.
"""
_MODEL = "| fault | call | client saw | degraded | directive | calls | s | back |\n|---|---|---|---|---|---|---|---|"
_STORES = "| connection | fault | client saw | degraded | directive | s | back |\n|---|---|---|---|---|---|---|"


def report(model: Sequence[Row], stores: Sequence[Row], seconds: float) -> str:
    """The page."""
    bad = [row for row in (*model, *stores) if row.bad]
    lines = [
        _HEAD,
        f"{len(model) + len(stores)} cells in {seconds:.0f} s; {len(bad)} of them broke a promise.",
        "",
        "## The model",
        "",
        "The calls of a turn are the router call and the final call, and a repair of each, made if the answer before it was"
        " unusable.",
        "",
        _MODEL,
        *(_model_line(row) for row in sorted(model, key=_place)),
        "",
        "## The stores and the services",
        "",
        _STORES,
        *(_store_line(row) for row in stores),
        "",
    ]
    if bad:
        lines += [
            "## Broken promises",
            "",
            *(f"- {row.fault}, {row.where}: {row.wanted or 'never came back'}" for row in bad),
            "",
        ]
    return "\n".join(lines)


def _place(row: Row) -> tuple[int, int]:
    """The catalogue's order; what befalls both calls comes last."""
    names = [fault.name for fault in FAULTS]
    return (names.index(row.fault), CALLS.index(row.where)) if row.fault in names else (len(names), 0)


def _model_line(row: Row) -> str:
    cells = (row.fault, row.where, _seen(row), _marks(row), row.directive, str(row.calls), f"{row.seconds:.1f}", _back(row))
    return f"| {' | '.join(cells)} |"


def _store_line(row: Row) -> str:
    cells = (row.where, row.fault, _seen(row), _marks(row), row.directive, f"{row.seconds:.1f}", _back(row))
    return f"| {' | '.join(cells)} |"


def _seen(row: Row) -> str:
    return f"{row.status} {row.said}" if row.status == 200 else f"{row.status} `{row.said}`"


def _marks(row: Row) -> str:
    return ", ".join(row.degraded)


def _back(row: Row) -> str:
    return "never" if row.back is None else f"{row.back:.1f}"
