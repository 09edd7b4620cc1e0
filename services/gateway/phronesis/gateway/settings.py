"""What an operator can set."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class GatewaySettings(BaseSettings):
    """Settings with the prefix `GATEWAY_`."""

    model_config = SettingsConfigDict(env_prefix="GATEWAY_", frozen=True)

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=8080, ge=0, le=65_535)
    """Port to listen on; 0 takes a free one."""
    bootstrap_key_file: Path | None = None
    """File with a key that is entered at start where it is absent: tenant `local`, user `owner`, role `admin`."""
    wait: float = Field(default=65.0, gt=0, le=600)
    """Seconds that the messages endpoint waits for a turn's end before it answers 202."""
    accept_wait: float = Field(default=10.0, gt=0, le=60)
    """Seconds that a turn may take to be accepted before the caller gets a 503."""
    requests_per_second: float = Field(default=500.0, gt=0)
    """Requests of one key, on average (D-155)."""
    burst: int = Field(default=1_000, ge=1)
    """Requests of one key at once (D-155)."""
    max_body: int = Field(default=1024 * 1024, ge=1_024)
    """Bytes of a request's body; uploads have their own limit, which the media contract states."""
    max_connections: int = Field(default=1_000, ge=1)
    """Open connections, of all callers together."""
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
