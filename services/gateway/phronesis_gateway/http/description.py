"""The OpenAPI document: what the framework makes of the routes, made ready for people who do not know this code."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute


def operation_id(route: APIRoute) -> str:
    """The id of a route's operation: the name of its function, which generated clients name their methods by."""
    return route.name


def openapi_description(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for path in found["paths"].values():
            for operation in path.values():
                # Bad input is a 400 that names the field, and a problem document like every other error.
                operation["responses"].pop("422", None)
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = without_null(parameter["schema"])
        for name in ("HTTPValidationError", "ValidationError"):
            found["components"]["schemas"].pop(name, None)
        app.openapi_schema = found
    return app.openapi_schema


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter where it is given: one that is left out is not null, and `null` in an address is a text."""
    stated = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(stated) != 1:
        return schema
    found: dict[str, Any] = stated[0] | {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return found
