"""What an operator can set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.tools import successor_name


class LimitSettings(BaseSettings):
    """What callers may ask, with the prefix `GATEWAY_` too."""

    model_config = SettingsConfigDict(env_prefix="GATEWAY_", frozen=True)

    requests_per_second: float = Field(default=30.0, gt=0)
    """Requests of one user, on average. The first key, the owner's of a local stack, has no such limits."""
    burst: int = Field(default=60, ge=1)
    """Requests of one user at once."""
    program_requests_per_second: float = Field(default=600.0, gt=0)
    """Requests of one key that acts for users, for all of them together, on average."""
    program_burst: int = Field(default=1_200, ge=1)
    """Requests of such a key at once."""
    tenant_requests_per_second: float = Field(default=1_000.0, gt=0)
    """Requests of one tenant, with all its keys, on average."""
    tenant_burst: int = Field(default=2_000, ge=1)
    """Requests of one tenant at once."""
    max_requests_per_tenant: int = Field(default=200, ge=1)
    """Requests of one tenant that are being answered side by side, those that wait for a turn among them; event streams
    are counted by themselves."""


class GatewaySettings(LimitSettings):
    """Settings with the prefix `GATEWAY_`."""

    model_config = SettingsConfigDict(env_prefix="GATEWAY_", frozen=True)

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=8080, ge=0, le=65_535)
    """Port to listen on; 0 takes a free one."""
    bootstrap_key_file: Path | None = None
    """File with a key that is entered at start where it is absent: tenant `local`, user `owner`, role `owner`."""
    wait: float = Field(default=65.0, gt=0, le=600)
    """Seconds that the messages endpoint waits for a turn's end before it answers 202."""
    accept_wait: float = Field(default=10.0, gt=0, le=60)
    """Seconds that a turn may take to be accepted before the caller gets a 503."""
    max_body: int = Field(default=1024 * 1024, ge=1_024)
    """Bytes of a request's body; uploads have their own limit, which the media contract states."""
    max_connections: int = Field(default=1_000, ge=1)
    """Open connections, of all callers together."""
    stop_notice: float = Field(default=2.0, ge=0, le=10)
    """Seconds for which a gateway that stops still answers, but is not ready, so that load balancers turn to others."""
    max_streams: int = Field(default=500, ge=1)
    """Open event streams, of all callers together."""
    max_streams_per_key: int = Field(default=20, ge=1)
    """Open event streams of one key."""
    stream_seconds: float = Field(default=600.0, gt=0)
    """Seconds after which an event stream is ended; its reader connects again and goes on where it was."""
    max_uploads: int = Field(default=4, ge=1)
    """Uploads taken in side by side; each may hold 25 MiB of memory."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the API from a browser."""
    revision: str | None = None
    """Revision of the source that this was built from; told by `/info`."""


class JwtSettings(BaseSettings):
    """Settings with the prefix `GATEWAY_JWT_`: tokens of an identity provider, taken beside keys where an issuer is set."""

    model_config = SettingsConfigDict(env_prefix="GATEWAY_JWT_", frozen=True)

    issuer: str | None = None
    """Issuer (`iss`) whose tokens are taken, character by character as they state it; none by default."""
    audience: str = Field(default="phronesis", min_length=1)
    """What a token has to state as its one audience (`aud`)."""
    jwks_url: str | None = None
    """Address of the issuer's public keys (JWKS); https, or on this machine."""
    jwks_file: Path | None = None
    """File with the same, in place of an address."""
    algorithms: tuple[
        Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"], ...
    ] = ("RS256", "ES256", "EdDSA")
    """Algorithms that a token may be signed with."""
    tenant_claim: str = "tenant"
    """Claim that names the tenant."""
    user_claim: str = "sub"
    """Claim that names the user."""
    role_claim: str = "role"
    """Claim that names the role; a token without it has the role `member`."""
    agents_claim: str = "agents"
    """Claim with the agents that a member or a reader may act as: words in a text, or a list; `noor` without it."""
    scope_claim: str = "scope"
    """Claim with the scopes: words in a text, or a list."""
    department_claim: str = "department"
    """Claim that names the department."""
    ministry_claim: str = "ministry"
    """Claim that names the ministry."""
    scopes: tuple[str, ...] = ()
    """Scopes that a token can give beside those that narrow it; `operator` is over all tenants."""
    leeway: float = Field(default=10.0, ge=0, le=120)
    """Seconds that the issuer's clock may differ from this one."""
    max_lifetime: float = Field(default=86_400.0, gt=0)
    """Seconds from its issue to its expiry that a token may be good for."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.issuer is not None and (self.jwks_url is None) == (self.jwks_file is None):
            raise ValueError("an issuer needs the address of its keys, or a file with them")
        url = urlsplit(self.jwks_url or "https:")
        if url.scheme != "https" and (url.scheme, url.hostname) not in (("http", "127.0.0.1"), ("http", "localhost")):
            raise ValueError("the address of the issuer's keys has to be https")
        return self


class McpSettings(BaseSettings):
    """Settings with the prefix `GATEWAY_MCP_`."""

    model_config = SettingsConfigDict(env_prefix="GATEWAY_MCP_", frozen=True)

    urls: tuple[Annotated[str, Field(pattern=r"^https?://[a-z0-9.:\[\]-]+$")], ...] = ()
    """Addresses at which clients reach the gateway besides loopback, for example `["https://phronesis.example"]`. Requests to
    `/mcp` under another name are refused, so that no page can reach it through a name of its own (DNS rebinding). The first
    names the resource that tokens are for."""


class ToolSettings(BaseSettings):
    """Settings with the prefix `GATEWAY_TOOLS_`."""

    model_config = SettingsConfigDict(env_prefix="GATEWAY_TOOLS_", frozen=True)

    retired: tuple[Annotated[str, Field(pattern=r"\.v1$")], ...] = ()
    """Tools of a first version that are neither shown nor called any more, for example `["foundation.list.v1"]`. Only one that
    has a second version can be retired, and taken out of here it is back."""

    @model_validator(mode="after")
    def _replaced(self) -> Self:
        if lost := [name for name in self.retired if name not in TOOLS or successor_name(name) not in TOOLS]:
            raise ValueError(f"there is no second version of {', '.join(lost)}")
        return self
