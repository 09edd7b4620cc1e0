"""The contracts with the messages that each one carries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
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
    """Kind and subject of the contract, since a job and its progress may share a subject."""
    return f"{kind(contract)}.{contract.subject}"


def read(folder: Path) -> dict[str, Any]:
    """What a folder holds of each contract by its name: one file a service."""
    return {key: value for path in sorted(folder.glob("*.json")) for key, value in json.loads(path.read_text()).items()}


def files(folder: Path, found: dict[str, Any]) -> dict[Path, str]:
    """The files of a folder, one a service, by path; the service is the second word of a contract's name."""
    services: dict[str, dict[str, Any]] = {}
    for key, value in found.items():
        services.setdefault(key.split(".")[1], {})[key] = value
    return {
        folder / f"{service}.json": json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        for service, values in services.items()
    }
