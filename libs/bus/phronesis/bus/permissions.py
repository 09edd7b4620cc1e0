"""Users and permissions of the NATS server, made from the contracts: who may publish and subscribe what."""

from __future__ import annotations

import json

from phronesis.contracts.catalog import ASKS, EVENTS, JOBS, OUTS, TOOLS
from phronesis.contracts.media import UPLOADS
from phronesis.contracts.principal import Principal
from phronesis.contracts.service import SERVICES

from .connection import INBOX
from .declare import USER as DECLARE
from .topology import MEDIA, consumers

_JOB_TELLERS = ("gateway",)
_WATCHERS = ("gateway",)


def _bucket(name: str) -> list[str]:
    stream = f"OBJ_{name}"
    return [
        f"$O.{name}.>",
        "$JS.API.STREAM.NAMES",  # the client looks its stream up by subject
        f"$JS.API.STREAM.INFO.{stream}",
        f"$JS.API.STREAM.PURGE.{stream}",
        f"$JS.API.STREAM.MSG.GET.{stream}",
        f"$JS.API.DIRECT.GET.{stream}.>",
        f"$JS.API.CONSUMER.CREATE.{stream}",
        f"$JS.API.CONSUMER.CREATE.{stream}.>",
        f"$JS.API.CONSUMER.DELETE.{stream}.>",
        f"$JS.FC.{stream}.>",
        f"$JS.ACK.{stream}.>",
    ]


def publishes(service: str) -> list[str]:
    """Subjects that `service` may publish to."""
    subjects = [f"{INBOX}.>", f"evt.*.{service}.>"]
    subjects += [f"rpc.*.{asked}.>" for asked in ASKS[service]]
    subjects += [f"out.*.{out.subject}.>" for out in OUTS if out.service == service]
    if service in _JOB_TELLERS:
        subjects += [job.on("*") for job in JOBS]
    for stream, config in consumers(1):
        durable = config["durable_name"]
        if durable.startswith(f"{service}-"):
            subjects += [f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}", f"$JS.ACK.{stream}.{durable}.>", f"parked.{durable}"]
    if service in _WATCHERS:
        subjects.append("$JS.API.STREAM.MSG.GET.OUT")
    if service == "gateway":
        subjects += _bucket(UPLOADS)
    if service == "media":
        subjects += _bucket(UPLOADS) + _bucket(MEDIA)
    return subjects


def subscribes(service: str) -> list[str]:
    """Subjects that `service` may subscribe to."""
    subjects = [f"{INBOX}.{service}.>", f"rpc.*.{service}.>"]
    subjects += [event.on("*") for event in EVENTS if service in event.hearers]
    if service in _WATCHERS:
        subjects.append("out.>")
    return subjects


def outsider(who: Principal) -> tuple[list[str], list[str]]:
    """What an outside system of one tenant and user may publish and subscribe: turns, the tools' own subjects, its progress."""
    may_publish = [job.on(who.tenant) for job in JOBS]
    may_publish += [tool.rpc.on(who.tenant) for tool in TOOLS.values() if who.role in tool.roles]
    return may_publish, [f"out.{who.tenant}.*.v1.turn.{who.user}.>", f"{who.inbox}.>"]


def server_config(*, port: int, store: str, passwords: dict[str, str], max_payload: int = 2 * 1024 * 1024) -> str:
    """The NATS server's configuration file, on the loopback interface.

    Args:
        port: where to listen.
        store: folder of JetStream.
        passwords: password of each service and of the declaring program.
        max_payload: greatest message in bytes.
    """
    users = [_user(name, passwords[name], publishes(name), subscribes(name)) for name in SERVICES]
    users.append(_user(DECLARE, passwords[DECLARE], ["$JS.API.>"], [f"{INBOX}.{DECLARE}.>"]))
    return "\n".join(
        [
            "host: 127.0.0.1",
            f"port: {port}",
            f"max_payload: {max_payload}",
            f"jetstream {{ store_dir: {json.dumps(store)} }}",
            "authorization { users: [",
            ",\n".join(users),
            "] }",
            "",
        ]
    )


def _user(name: str, password: str, may_publish: list[str], may_subscribe: list[str]) -> str:
    permissions = {"publish": {"allow": may_publish}, "subscribe": {"allow": may_subscribe}}
    return json.dumps({"user": name, "password": password, "permissions": permissions})
