"""The OpenAPI document: what the framework makes of the routes, with the words and examples that a stranger needs."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, get_args

import yaml
from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from fastapi.openapi.utils import get_fields_from_routes, get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from phronesis_contracts import (
    BadRequest,
    BudgetExceeded,
    Conflict,
    Forbidden,
    NotFound,
    Retired,
    ServiceError,
    TimedOut,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from phronesis_contracts.memory import ProfileChanged

from .http.responses import MEDIA_TYPE, ProblemDocument
from .openai.errors import Envelope, fault_of

Node = dict[str, Any]

_ABOUT = """\
Memory, conversations and turns of AI agents, their tools, and the records of a tenant.

**Keys.** Every request to `/api` and `/v1` carries a key or a token: `Authorization: Bearer phr_...`. It says whom the request
acts for and what it may do. A key with the scope `act_for_users` names a user of its program in the header `Phronesis-User`.

**Repeats.** A write with an `Idempotency-Key` may be sent again: the same key with the same body is answered with the first
result.

**Errors.** An error is a problem document (RFC 9457). Its `code` is stable; its `detail` is for people. `Retry-After` says when
a repeat may succeed. Under `/v1` errors have the form that OpenAI's clients read.

**Additions.** Requests to `/api` with a field that is not described are refused. Responses get new fields in time: ignore those
that you do not know.
"""
_TAGS = {
    "turns": "Messages to agents, and the turns that answer them.",
    "events": "Watching a turn while it is worked on.",
    "chat": "Questions to the analysts.",
    "conversations": "What was said, and its deletion.",
    "memory": "What is remembered for a user, for programs that keep and search it themselves.",
    "media": "Files that messages name.",
    "profile": "What is known of the caller.",
    "tasks": "Goals that are worked on in the background.",
    "approvals": "Calls of tools that wait for a person, and the policy that says which.",
    "agents": "Packaged agents, and those of a tenant's own.",
    "tools": "The tools of the catalog, called directly.",
    "mcp-servers": "Outside MCP servers, whose tools agents may call.",
    "mcp": "How MCP clients find out whose tokens are taken.",
    "ledger": "What model calls used, and limits of it.",
    "keys": "Keys of the API and of the bus.",
    "users": "Who uses a tenant, and what was done in it; their data, erased with a proof, and for how long it is kept.",
    "openai": "The same agents for clients of OpenAI's API.",
    "operations": "For machines that watch over the process.",
}
_ERRORS: dict[type[ServiceError], tuple[str, str]] = {
    BadRequest: ("The input is at fault; `field` says which part of it.", "limit: Input should be less than or equal to 200"),
    Unauthorized: ("No key came with the request, or one that is not good.", "send a key: Authorization: Bearer phr_..."),
    BudgetExceeded: ("A limit of tokens or money is reached.", "the tenant's limit of tokens for the day is reached"),
    Forbidden: ("The caller may not do this.", "this takes an administrator"),
    NotFound: ("There is no such thing for this caller.", "there is no such thing"),
    Conflict: ("The state does not allow it, or the idempotency key came before with another body.", "it has ended already"),
    Retired: ("There is a later version of the tool; the detail names it.", "this tool is retired; use a later version"),
    ProfileChanged: (
        "It is not the version of `If-Match` any more; read it again.",
        "the profile was changed meanwhile",
    ),
    TooLarge: ("The body is over the limit of its size.", "the body is over 1048576 bytes"),
    TooManyRequests: ("The caller asks too often, or holds too many streams open.", "ask less often"),
    Unavailable: ("What it takes is not there for the moment; a repeat may succeed.", "memory does not answer"),
    TimedOut: ("No answer came in time; a repeat may succeed.", "no answer came in time"),
}
_BY_STATUS = {str(error.status): error for error in _ERRORS}
_ERROR = "#/components/responses/"
_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def operation_id(route: APIRoute) -> str:
    """The id of a route's operation: the name of its function, which generated clients name their methods by."""
    return route.name


def serve_description(app: FastAPI) -> None:
    """Let the application have this document, and answer it from a thread: to make it takes seconds of the loop otherwise."""
    address = str(app.openapi_url)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", None) != address]

    @app.get(address, include_in_schema=False)
    def openapi() -> JSONResponse:
        return JSONResponse(app.openapi())


def _describe(app: FastAPI) -> Node:
    """The document, made on the first call: texts of fields are read from the source, which takes a moment."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            description=_ABOUT,
            routes=app.routes,
            tags=[{"name": name, "description": text} for name, text in _TAGS.items()],
            servers=[{"url": "/", "description": "The installation that this document came from."}],
            contact={"name": "Whoever operates this installation"},
            license_info={"name": "Apache 2.0", "identifier": "Apache-2.0"},
        )
        schemas = found["components"]["schemas"]
        schemas["ProblemDocument"] = jsonable_encoder(ProblemDocument.model_json_schema(), exclude_none=True)
        # Bad input is a 400 that names the field, and a problem document like every other error.
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        models: list[type[BaseModel]] = [*_models(app), ProblemDocument]
        for model in models:
            if (schema := schemas.get(model.__name__)) is not None:
                _describe_fields(model, schema)
        _state_items(schemas)
        operations = [operation for item in found["paths"].values() for operation in item.values()]
        examples = _examples()
        for operation in operations:
            _finish(operation, examples.get(operation["operationId"], {}))
        used = {response.get("$ref") for operation in operations for response in operation["responses"].values()}
        errors = dict(error for envelope in (False, True) for error in _errors(envelope))
        found["components"]["responses"] = {name: body for name, body in errors.items() if _ERROR + name in used}
        app.openapi_schema = found
    return app.openapi_schema


def _finish(operation: Node, examples: dict[Any, Any]) -> None:
    """Make an operation ready: its summary, its parameters, its errors and its examples."""
    first, _, rest = operation["description"].partition("\n\n")
    operation["summary"] = first.removesuffix(".")
    operation["description"] = rest or first
    operation.setdefault("security", [])
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = without_null(parameter["schema"])
    _state_errors(operation)
    if "requestBody" in operation:
        _exemplify(operation["requestBody"], examples.get("request"))
    for status, response in operation["responses"].items():
        if status.startswith("2") or (status == "503" and "content" in response):
            _exemplify(response, examples.get(int(status)), examples.get("stream"))


def _exemplify(place: Node, example: Any, stream: str | None = None) -> None:
    """Give the bodies of a place their examples: a text is one of text alone, and files of other types have none."""
    for media_type, content in place.get("content", {}).items():
        if media_type == "text/event-stream":
            content["example"] = stream
            # A schema here is one of each event, and the framework's says that the whole is a text.
            content.pop("schema", None)
        elif isinstance(example, str) == media_type.startswith("text/"):
            content["example"] = example


def _state_errors(operation: Node) -> None:
    """Name the errors that an operation answers with: those of its kind, those that its route states, and any other."""
    responses = operation["responses"]
    responses.pop("422", None)
    if "default" not in responses:
        return
    named = {status for status in responses if status[0] in "45" and "content" not in responses[status]}
    places = {parameter["in"] for parameter in operation.get("parameters", ())}
    headers = {parameter["name"] for parameter in operation.get("parameters", ())}
    if operation["security"]:
        named |= {"401", "403", "429", "503", "504"}
    if places or "requestBody" in operation:
        named.add("400")
    if "requestBody" in operation:
        named.add("413")
    if "path" in places:
        named.add("404")
    if "Idempotency-Key" in headers:
        named.add("409")
    prefix = "OpenAI" if "openai" in operation["tags"] else ""
    for status in sorted(named):
        responses[status] = {"$ref": f"{_ERROR}{prefix}{_BY_STATUS[status].__name__}"}
    responses["default"] = {"$ref": f"{_ERROR}{prefix}Problem"}


def _errors(envelope: bool) -> Iterator[tuple[str, Node]]:
    """The errors that operations share, by name, as one of the two faces writes them."""
    prefix = "OpenAI" if envelope else ""
    for error, (text, detail) in _ERRORS.items():
        yield prefix + error.__name__, _error(error, text, detail, envelope)
    other = "Any other error; its status and its `code` say which."
    yield f"{prefix}Problem", _error(Conflict, other, "it has ended already", envelope)


def _error(error: type[ServiceError], text: str, detail: str, envelope: bool) -> Node:
    name, media_type = ("Envelope", "application/json") if envelope else ("ProblemDocument", MEDIA_TYPE)
    body = error(detail).body()
    kind = {"type": f"urn:phronesis:problem:{error.code}", "title": HTTPStatus(error.status).phrase}
    example = Envelope(error=fault_of(body)).model_dump() if envelope else kind | body | {"trace_id": _TRACE}
    content = {"schema": {"$ref": f"#/components/schemas/{name}"}, "example": example}
    return {"description": text, "content": {media_type: content}}


def _models(app: FastAPI) -> Iterator[type[BaseModel]]:
    """The models of every body that the routes take and give, with those inside them."""
    seen: set[type[BaseModel]] = set()
    waiting: list[Any] = [field.field_info.annotation for field in get_fields_from_routes(app.routes)]
    while waiting:
        annotation = waiting.pop()
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            waiting.extend(get_args(annotation))
        elif annotation not in seen:
            seen.add(annotation)
            waiting.extend(field.annotation for field in annotation.model_fields.values())
            yield annotation


def _describe_fields(model: type[BaseModel], schema: Node) -> None:
    """Say of each property what stands behind its field in the source, unless the schema says it."""
    texts: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if issubclass(owner, BaseModel) and owner is not BaseModel:
            texts |= _texts(owner.__module__).get(owner.__name__, {})
    for name, field in model.model_fields.items():
        for key in {name, field.alias, field.serialization_alias} & schema.get("properties", {}).keys():
            if name in texts:
                schema["properties"][key].setdefault("description", texts[name])


@cache
def _texts(module: str) -> dict[str, dict[str, str]]:
    """The texts behind the fields of a module's classes, by class and field.

    The models have them in no schema: the tools that models read are made of the same classes, and each word there is paid for.
    """
    found: dict[str, dict[str, str]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.ClassDef):
            for field, text in zip(node.body, node.body[1:], strict=False):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                        found.setdefault(node.name, {})[name] = inspect.cleandoc(said).replace("\n", " ")
    return found


def _state_items(node: Any) -> None:
    """Say of each array what is in it: a reader of schemas may not take one that is always empty, or a tuple, for a list."""
    if isinstance(node, list):
        for each in node:
            _state_items(each)
    elif isinstance(node, dict):
        if node.get("type") == "array":
            node.setdefault("items", node.get("prefixItems", [{}])[0])
        for each in node.values():
            _state_items(each)


def _examples() -> dict[str, dict[Any, Any]]:
    """Examples by operation: of the `request`, of the response by status, and of its `stream` of events."""
    text = files(__package__).joinpath("examples.yaml").read_text("utf-8")
    found: dict[str, dict[Any, Any]] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found


def without_null(schema: Node) -> Node:
    """The schema of a parameter where it is given: one that is left out is not null, and `null` in an address is a text."""
    stated = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(stated) != 1:
        return schema
    found: Node = stated[0] | {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return found
