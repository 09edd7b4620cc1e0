"""The OpenAPI description: the framework's, without the answer to bad input that this API does not give."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi


def described(app: FastAPI) -> dict[str, Any]:
    """The description of `app`, made once."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for path in found["paths"].values():
            for operation in path.values():
                # Bad input is a 400 that names the field, and a problem document like every other error.
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            found["components"]["schemas"].pop(name, None)
        app.openapi_schema = found
    return app.openapi_schema
