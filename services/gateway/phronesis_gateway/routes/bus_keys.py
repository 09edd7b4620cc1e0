"""Keys of the bus: made by those who run the platform. They are listed and revoked as all keys are."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from urllib.parse import urlsplit

from fastapi import APIRouter
from starlette.responses import Response

from phronesis_bus import Bus
from phronesis_gateway.answers import PROBLEMS, answers, as_json
from phronesis_gateway.bus_keys import BusKeys
from phronesis_gateway.door import Caller, Door, keyed
from phronesis_gateway.messages import BusKeyGiven
from phronesis_gateway.routes.keys import KEYS, KeyShown


class BusKeyMade(KeyShown):
    """A key of the bus just made. What an outside system comes in with is shown this once."""

    servers: tuple[str, ...]
    """Where the broker is, as the platform itself reaches it."""
    nats_user: str
    """User at the broker."""
    nats_password: str
    """Password at the broker."""
    token: str
    """Goes with each message, in the header `Phronesis-Principal`."""
    inbox: str
    """Prefix of the subjects on which answers are heard."""
    expires_at: datetime


def router(door: Door, bus: Bus, keys: BusKeys) -> APIRouter:
    """The routes.

    Args:
        door: lets callers in.
        bus: the connected bus.
        keys: makes keys.
    """
    routes = APIRouter(route_class=keyed(door), responses=PROBLEMS, tags=["keys"])
    servers = tuple(_address(url) for url in bus.settings.url.split(","))

    @routes.post(f"{KEYS}/bus", status_code=201, responses=answers(BusKeyMade, 201))
    async def create_bus_key(given: BusKeyGiven, who: Caller) -> Response:
        """Make a key for an outside system on the bus. It takes the scope `operator`."""
        key, made = await keys.make(who, given)
        shown = {"nats_user": made.user, "nats_password": made.password, "token": made.token, "inbox": made.inbox}
        body = BusKeyMade(**asdict(key), servers=servers, **shown)
        return as_json(body, 201, {"Location": f"{KEYS}/{key.id}"})

    return routes


def _address(url: str) -> str:
    """`url` without whom the platform itself may come in as."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
