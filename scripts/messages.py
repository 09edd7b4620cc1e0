"""The contracts with the messages that each one carries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phronesis_contracts import Event, Job, Message, Out, Rpc
from phronesis_contracts.catalog import EVENTS, JOBS, OUTS, RPCS

Contract = Rpc[Any, Any] | Job[Any] | Event[Any] | Out[Any]


def kind(contract: Contract) -> str:
    """The first token of the contract's subjects."""
    match contract:
        case Rpc():
            return "rpc"
        case Job():
            return "job"
        case Event():
            return "evt"
        case Out():
            return "out"


def contracts() -> Iterator[Contract]:
    """Every contract, by kind and subject."""
    tables: tuple[tuple[Contract, ...], ...] = (RPCS, JOBS, EVENTS, OUTS)
    for table in tables:
        yield from sorted(table, key=lambda contract: contract.subject)


def carried(contract: Contract) -> dict[str, type[Message]]:
    """What the contract carries: `in`, and `out` where it is answered."""
    models: dict[str, type[Message]] = {"in": contract.input}
    if isinstance(contract, Rpc):
        models["out"] = contract.output
    return models


def name(contract: Contract) -> str:
    """The contract's name as a file: kind and subject, since a job and its progress may share a subject."""
    return f"{kind(contract)}.{contract.subject}"
