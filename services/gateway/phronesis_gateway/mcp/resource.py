"""The protected resource, as its clients find out about it (RFC 9728), and how they are told what they lack (RFC 6750)."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.responses import Response

from phronesis_contracts import Unauthorized
from phronesis_gateway.answers import PROBLEMS, answers, as_json
from phronesis_gateway.problems import problem
from phronesis_gateway.scopes import SCOPES, WRITE, InsufficientScope
from phronesis_gateway.settings import McpSettings

PATH = "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Resource(BaseModel):
    """What a client needs to know before it asks for a token."""

    resource: str
    authorization_servers: tuple[str, ...]
    """Empty where only keys of the gateway's own are taken."""
    bearer_methods_supported: tuple[str, ...] = ("header",)
    scopes_supported: tuple[str, ...] = SCOPES
    resource_name: str = "Phronesis"


class Named:
    """The names under which clients may reach the resource.

    Args:
        settings: the names besides loopback.
        origins: origins whose pages may call the API.
    """

    def __init__(self, settings: McpSettings, origins: tuple[str, ...]) -> None:
        self._first = settings.urls[0] if settings.urls else None
        hosts = [urlsplit(url).netloc for url in settings.urls]
        local = [f"{scheme}://{host}" for scheme in ("http", "https") for host in _LOOPBACK]
        allowed = TransportSecuritySettings(
            allowed_hosts=[*hosts, *_LOOPBACK, *(f"{host}:*" for host in _LOOPBACK)],
            allowed_origins=[*settings.urls, *origins, *local, *(f"{origin}:*" for origin in local)],
        )
        self._check = TransportSecurityMiddleware(allowed)

    async def refused(self, request: Request) -> Response | None:
        """The refusal of a request that came under another name (421), or from a page of another origin (403)."""
        return await self._check.validate_request(request)

    def url(self, headers: Headers) -> str:
        """The address of the gateway, as clients know it."""
        return self._first or f"http://{headers.get('host')}"

    def challenge(self, headers: Headers, error: Unauthorized | InsufficientScope) -> Response:
        """Tell a caller what it lacks, and where to read how to get it."""
        said = [f'resource_metadata="{self.url(headers)}{WELL_KNOWN}{PATH}"']
        if isinstance(error, InsufficientScope):
            said = ['error="insufficient_scope"', f'scope="{WRITE}"', *said]
        elif "authorization" in headers:
            said = ['error="invalid_token"', *said]
        return problem(error.body(), {"WWW-Authenticate": f"Bearer {', '.join(said)}"})


def protected_resource(named: Named, issuer: str | None) -> APIRouter:
    """The routes that describe the resource.

    Args:
        named: the names of the resource.
        issuer: whose tokens are taken.
    """
    routes = APIRouter(responses=PROBLEMS, tags=["mcp"])

    @routes.get(WELL_KNOWN, responses=answers(Resource))
    @routes.get(WELL_KNOWN + PATH, responses=answers(Resource))
    async def describe(request: Request) -> Response:
        """What `/mcp` is, and whose tokens it takes (RFC 9728)."""
        if (refusal := await named.refused(request)) is not None:
            return refusal
        servers = () if issuer is None else (issuer,)
        return as_json(Resource(resource=named.url(request.headers) + PATH, authorization_servers=servers))

    return routes
