"""`docs/generated/asyncapi.yaml`: every subject of the bus with its messages, as AsyncAPI 3.0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic.json_schema import models_json_schema

from phronesis_bus import VERSION
from phronesis_contracts import Event, Job, Message, Out, Rpc

from .messages import Contract, carried, contracts, kind, name
from .tree import GENERATED, GENERATED_DOCS

PATH = GENERATED_DOCS / "asyncapi.yaml"
_REF = "#/components/schemas/{model}"
_HEADERS = {
    "type": "object",
    "properties": {
        "traceparent": {"type": "string", "description": "W3C trace context."},
        "Correlation-Id": {"type": "string"},
        "Phronesis-Principal": {"type": "string", "description": "Signed principal; on rpc and job."},
        "Phronesis-Service": {"type": "string", "description": "The sending service."},
        "Phronesis-Deadline": {"type": "string", "description": "Seconds since the epoch; on rpc."},
        "Idempotency-Key": {"type": "string", "description": "Key of a write; on rpc."},
        "Nats-Msg-Id": {"type": "string", "description": "Tenant and outbox row; on evt."},
    },
}
_SAYS = {
    "rpc": "A question with one answer, by core request and reply; the queue group is the service.",
    "job": "Work that one worker takes from a bounded work queue.",
    "evt": "News of a committed change, at least once to each follower.",
    "out": "Progress of a turn, kept for an hour.",
}


def documents() -> dict[Path, str]:
    """The document."""
    return {PATH: f"# {GENERATED}\n" + yaml.safe_dump(_document(), sort_keys=False, allow_unicode=True, width=120)}


def _document() -> dict[str, Any]:
    models: list[type[Message]] = []
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    for contract in contracts():
        models += carried(contract).values()
        key = name(contract)
        channels[key] = _channel(contract)
        operations[key] = _operation(contract)
        if isinstance(contract, Rpc):
            channels[f"{key}.reply"] = {
                "address": None,
                "messages": {"answer": _message(contract.output), "error": {"$ref": "#/components/messages/Error"}},
            }
    _, schemas = models_json_schema([(m, "validation") for m in dict.fromkeys(models)], ref_template=_REF)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Phronesis on the bus",
            "version": VERSION,
            "description": "Every message of the platform. docs/reference/bus.md says how they are carried.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {
            "schemas": schemas["$defs"] | {"Headers": _HEADERS, "Error": _error()},
            "messages": {"Error": {"name": "Error", "payload": {"$ref": "#/components/schemas/Error"}}},
        },
    }


def _channel(contract: Contract) -> dict[str, Any]:
    tail = ".{user}.{turn}" if isinstance(contract, Out) else ""
    parameters = {"tenant": {"description": "The tenant."}}
    if tail:
        parameters |= {"user": {"description": "The turn's user."}, "turn": {"description": "The turn's id."}}
    return {
        "address": f"{kind(contract)}.{{tenant}}.{contract.subject}{tail}",
        "description": _SAYS[kind(contract)],
        "parameters": parameters,
        "messages": {"message": _message(contract.input)},
    }


def _operation(contract: Contract) -> dict[str, Any]:
    key = name(contract)
    operation: dict[str, Any] = {
        "action": "receive" if isinstance(contract, (Rpc, Job)) else "send",
        "channel": {"$ref": f"#/channels/{key}"},
        "tags": [{"name": contract.service}],
        "x-max-bytes": contract.max_bytes,
    }
    match contract:
        case Rpc():
            operation["x-timeout-seconds"] = contract.timeout
            operation["reply"] = {"channel": {"$ref": f"#/channels/{key}.reply"}}
        case Job():
            operation["x-backlog"] = contract.backlog
        case Event():
            operation["x-followers"] = list(contract.followers)
    return operation


def _message(model: type[Message]) -> dict[str, Any]:
    return {
        "name": model.__name__,
        "headers": {"$ref": "#/components/schemas/Headers"},
        "payload": {"$ref": _REF.format(model=model.__name__)},
    }


def _error() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "A refusal or a failure; `code` is stable, `detail` is for people.",
        "required": ["code", "status", "detail"],
        "properties": {
            "code": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "field": {"type": "string"},
            "retry_after": {"type": "number"},
        },
    }
