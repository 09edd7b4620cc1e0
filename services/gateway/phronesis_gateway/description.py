"""The OpenAPI description: the framework's, without the answer to bad input that this API does not give."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import compile_path


def described(app: FastAPI) -> dict[str, Any]:
    """The description of `app`, made once."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for path in found["paths"].values():
            for operation in path.values():
                # Bad input is a 400 that names the field, and a problem document like every other error.
                operation["responses"].pop("422", None)
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = present(parameter["schema"])
        for name in ("HTTPValidationError", "ValidationError"):
            found["components"]["schemas"].pop(name, None)
        app.openapi_schema = found
    return app.openapi_schema


def methods(app: FastAPI, path: str) -> str | None:
    """The methods of `path` as an `Allow` header states them; `None` where the description has no such path."""
    paths: dict[str, dict[str, Any]] = app.openapi()["paths"]
    # A path that is named stands before one that is a pattern for it.
    for template in sorted(paths, key=lambda template: template.count("{")):
        if compile_path(template)[0].match(path):
            return ", ".join(sorted(method.upper() for method in paths[template]))
    return None


def present(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter where it is given: one that is left out is not null, and `null` in an address is a text."""
    stated = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(stated) != 1:
        return schema
    found: dict[str, Any] = stated[0] | {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return found
