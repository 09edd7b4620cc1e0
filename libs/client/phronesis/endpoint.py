"""Finding the stack: an address and a key that are stated, or those that a local stack left in its data directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import httpx
from pydantic_settings import BaseSettings, SettingsConfigDict

from phronesis_contracts import BadRequest, Unavailable

from .request import USER, check_header

DEFAULT_DATA = Path("~/.phronesis")
START_ONE = "start one with `phronesis up`"


class ClientSettings(BaseSettings):
    """Settings of the SDK, from the environment."""

    model_config = SettingsConfigDict(env_prefix="PHRONESIS_", frozen=True, env_ignore_empty=True, extra="ignore")

    url: str | None = None
    """Address of a gateway (`PHRONESIS_URL`)."""
    key: str | None = None
    """A key of that gateway (`PHRONESIS_KEY`)."""
    data: Path | None = None
    """Data directory of a local stack (`PHRONESIS_DATA`); `~/.phronesis` when absent."""


@dataclass(frozen=True)
class Endpoint:
    """A gateway to talk to."""

    url: str
    key: str | None = field(default=None, repr=False)
    hint: str = ""
    user: str | None = None
    """The user that all calls are made for, by a key that may act for users."""

    @property
    def is_local(self) -> bool:
        """Whether the address is this machine, so that no proxy stands between."""
        host = httpx.URL(self.url).host
        try:
            return host == "localhost" or ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def headers(self) -> dict[str, str]:
        acting = {USER: check_header(self.user, "user_id")} if self.user is not None else {}
        return acting | ({"Authorization": f"Bearer {check_header(self.key, 'key')}"} if self.key else {})


def locate(url: str | None, key: str | None, data: Path | str | None) -> Endpoint:
    """The stack at `url` with `key`, else the local one of the directory `data`.

    Raises:
        Unavailable: there is no local stack.
        BadRequest: `url` is no http address.
    """
    if url:
        return Endpoint(_check_url(url), key)
    directory = Path(data or DEFAULT_DATA).expanduser()
    found = _read(directory / "url")
    if found is None:
        raise Unavailable(f"no local stack in {directory}; {START_ONE}, or name another by --url and --key")
    return Endpoint(_check_url(found), key or _read(directory / "key"), f", the local stack of {directory}; {START_ONE}")


def _read(file: Path) -> str | None:
    try:
        return file.read_text("utf-8").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise Unavailable(f"cannot read {file}") from exc


def _check_url(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as exc:
        raise BadRequest(f"{url} is no address of a gateway", field="url") from exc
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise BadRequest(f"{url} is no address of a gateway", field="url")
    return url.rstrip("/")


def find(url: str | None, key: str | None, data: Path | str | None) -> Endpoint:
    """The stack that the arguments name, else the one that the environment names, else the default local one.

    A directory that is stated goes before an address in the environment, and brings its own key.

    Raises:
        Unavailable: there is no local stack.
        BadRequest: the address is no http address.
    """
    if data is not None and not url:
        return locate(None, key, data)
    settings = ClientSettings()
    return locate(url or settings.url, key or settings.key, data or settings.data)
