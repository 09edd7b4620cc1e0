"""The Python SDK of Phronesis and the `phronesis` command."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .aio import AsyncClient
    from .calls.memory import batches
    from .models import Accepted, KeyInfo, NewBusKey, NewKey, Readiness, ToolInfo, Trace, TurnEvent
    from .sync import Client

__all__ = [
    "Accepted",
    "AsyncClient",
    "Client",
    "KeyInfo",
    "NewBusKey",
    "NewKey",
    "Readiness",
    "ToolInfo",
    "Trace",
    "TurnEvent",
    "batches",
]

_HOMES = {"AsyncClient": ".aio", "Client": ".sync", "batches": ".calls.memory"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the command starts without the SDK's dependencies."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, ".models"), __name__), name)
