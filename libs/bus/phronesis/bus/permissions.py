"""Users and permissions of the NATS server, made from the contracts: who may publish and subscribe what."""

from __future__ import annotations

import json

from phronesis.contracts.catalog import ASKS, EVENTS, JOBS, OUTS
from phronesis.contracts.media import UPLOADS
from phronesis.contracts.service import SERVICES

from .admission import ANSWERED, ASKED, SYSTEM, SYSTEM_SUBJECTS
from .connection import INBOX
from .declare import USER as DECLARE
from .recording import PUBLISHES as OPERATOR_PUBLISHES
from .recording import USER as OPERATOR
from .revocation import SUBJECT as REVOKED_SUBJECT
from .topology import MEDIA, REVOKED, consumers

_JOB_TELLERS = ("gateway",)
_WATCHERS = ("gateway",)
_SUBSCRIPTIONS = 1_000
"""Subscriptions of one connection."""
_LOGIN_SECONDS = 5
"""Seconds in which a user has to be let in."""


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
    subjects.append(f"$JS.API.STREAM.MSG.GET.{REVOKED}")
    if service in _WATCHERS:
        subjects.append("$JS.API.STREAM.MSG.GET.OUT")
    if service == "gateway":
        subjects += [*_bucket(UPLOADS), f"{REVOKED_SUBJECT}.*"]
    if service == "media":
        subjects += _bucket(UPLOADS) + _bucket(MEDIA)
    return subjects


def subscribes(service: str) -> list[str]:
    """Subjects that `service` may subscribe to."""
    subjects = [f"{INBOX}.{service}.>", f"rpc.*.{service}.>", f"{REVOKED_SUBJECT}.*"]
    subjects += [event.on("*") for event in EVENTS if service in event.hearers]
    if service in _WATCHERS:
        subjects.append("out.>")
    return subjects


def server_config(
    *, port: int, store: str, passwords: dict[str, str], issuer: str | None = None, max_payload: int = 2 * 1024 * 1024
) -> str:
    """The NATS server's configuration file, on the loopback interface.

    Args:
        port: where to listen.
        store: folder of JetStream.
        passwords: password of each service and of the declaring program, and of the operator where backups are made.
        issuer: who lets outside systems in, as `Issuer.name` says; without one they stay out.
        max_payload: greatest message in bytes.
    """
    users = [_user(name, passwords[name], publishes(name), subscribes(name)) for name in SERVICES]
    heard = [f"{INBOX}.{DECLARE}.>", f"{REVOKED_SUBJECT}.*", ASKED]
    users.append(_user(DECLARE, passwords[DECLARE], ["$JS.API.>", ANSWERED], heard))
    if OPERATOR in passwords:
        may_publish = [*OPERATOR_PUBLISHES, *_bucket(MEDIA)]
        users.append(_user(OPERATOR, passwords[OPERATOR], may_publish, [f"{INBOX}.{OPERATOR}.>"]))
    named = json.dumps([*SERVICES, DECLARE, OPERATOR, SYSTEM])
    system = _user(SYSTEM, passwords[DECLARE], list(SYSTEM_SUBJECTS), [f"{INBOX}.{SYSTEM}.>"])
    return "\n".join(
        [
            "host: 127.0.0.1",
            f"port: {port}",
            f"max_payload: {max_payload}",
            f"max_subscriptions: {_SUBSCRIPTIONS}",
            f"jetstream {{ store_dir: {json.dumps(store)} }}",
            f'accounts {{ "$SYS": {{ users: [ {system} ] }} }}',
            f"authorization {{ timeout: {_LOGIN_SECONDS}, users: [",
            ",\n".join(users),
            "]",
            # Whoever is named here is let in by a password alone, also while nobody answers the broker's questions.
            f"auth_callout {{ issuer: {issuer}, auth_users: {named} }}" if issuer else "",
            "}",
            "",
        ]
    )


def _user(name: str, password: str, may_publish: list[str], may_subscribe: list[str]) -> str:
    permissions = {"publish": {"allow": may_publish}, "subscribe": {"allow": may_subscribe}}
    return json.dumps({"user": name, "password": password, "permissions": permissions})
