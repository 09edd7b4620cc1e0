"""Limits of the media service, and the models it may ask."""

from __future__ import annotations

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class MediaSettings(BaseSettings):
    """Settings with the prefix `MEDIA_`."""

    model_config = SettingsConfigDict(env_prefix="MEDIA_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    parsers: int = Field(default=2, ge=1)
    """Media of one kind that are read side by side, each in a child process; as many processes are kept warm."""
    parse_seconds: float = Field(default=25.0, gt=0)
    """Seconds that reading one medium may take; four fifths of them may be processor time."""
    parse_memory: int = Field(default=1024 * 1024 * 1024, ge=256 * 1024 * 1024)
    """Bytes of address space that a process that reads documents may have."""
    model_memory: int = Field(default=3 * 1024 * 1024 * 1024, ge=1024 * 1024 * 1024)
    """Bytes of address space that a process with a model for OCR or speech may have."""
    idle_seconds: float = Field(default=120.0, gt=0)
    """Seconds after which a process that has nothing to read is ended, and its memory given back."""
    page_limit: int = Field(default=1000, ge=1)
    """Pages that a document may have."""
    scan_limit: int = Field(default=20, ge=1)
    """Pages without text that OCR looks at, in one document or TIFF."""
    pixel_limit: int = Field(default=40_000_000, ge=1)
    """Pixels that an image may have."""
    audio_limit: float = Field(default=1200.0, gt=0)
    """Seconds that a recording may last."""
    text_limit: int = Field(default=10_000_000, ge=1)
    """Characters of a medium's text that are kept; a longer text ends with a mark."""
    fetch_seconds: float = Field(default=20.0, gt=0)
    """Seconds that fetching an address may take, redirects and all."""
    groq_api_key: SecretStr | None = Field(default=None, validation_alias="GROQ_API_KEY")
    """Key for Groq, whose models then read images and recordings; without it, or where they fail, the local engines do."""
    groq_url: str | None = None
    """Address of an endpoint that speaks Groq's API, instead of Groq's own."""
    vision_model: str = "meta-llama/llama-4-scout-17b-16e-instruct"
    """Groq's model for images."""
    speech_model: str = "whisper-large-v3-turbo"
    """Groq's model for recordings."""


class AddressSettings(BaseSettings):
    """Settings of the addresses that services may connect to, with the same prefix."""

    model_config = SettingsConfigDict(env_prefix="MEDIA_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    trusted_hosts: tuple[str, ...] = ()
    """`host:port` of servers beside the platform that an administrator may register as outside MCP servers, though they are no
    public addresses; pages are never fetched from them."""
