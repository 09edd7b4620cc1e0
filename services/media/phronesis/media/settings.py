"""Limits of the media service."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class MediaSettings(BaseSettings):
    """Settings with the prefix `MEDIA_`."""

    model_config = SettingsConfigDict(env_prefix="MEDIA_", frozen=True)

    parsers: int = Field(default=2, ge=1)
    """Documents that are read side by side, each in a child process of its own."""
    parse_seconds: float = Field(default=25.0, gt=0)
    """Seconds that reading one document may take, and seconds of processor time."""
    parse_memory: int = Field(default=1024 * 1024 * 1024, ge=256 * 1024 * 1024)
    """Bytes of address space that the child process may have."""
    page_limit: int = Field(default=1000, ge=1)
    """Pages that a document may have (D-032)."""
    text_limit: int = Field(default=10_000_000, ge=1)
    """Characters of a document's text that are kept; a longer text ends with a mark."""
    fetch_seconds: float = Field(default=20.0, gt=0)
    """Seconds that fetching an address may take, redirects and all."""
