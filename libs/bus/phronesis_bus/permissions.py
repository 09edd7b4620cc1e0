"""Users and permissions of the NATS server, made from the contracts, and its configuration files."""

from __future__ import annotations

import json
from collections.abc import Mapping

from phronesis_contracts.catalog import ASKS, EVENTS, JOBS, OUTS, RPCS
from phronesis_contracts.media import UPLOADS
from phronesis_contracts.service import HEALTH, SERVICES, SPANS

from .admission import ANSWERED, ASKED, SYSTEM, SYSTEM_SUBJECTS
from .connection import INBOX
from .connection import REVOCATION_SUBJECT as REVOKED_SUBJECT
from .declare import USER as DECLARE
from .recording import STREAM as RECORDED
from .recording import USER as OPERATOR
from .topology import BACKUPS, MEDIA, REVOKED, consumers, streams

_JOB_TELLERS = ("gateway",)
_WATCHERS = ("gateway",)
_ERASERS = ("orchestrator",)
"""Who takes out of streams what was forgotten."""
LIMITS = ("max_payload: 2MB", "max_subscriptions: 1000")
"""The greatest message, headers included, and the subscriptions of one connection."""
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


def publish_subjects(service: str) -> list[str]:
    subjects = [f"{INBOX}.>"]
    subjects += [rpc.on("*") for rpc in RPCS if rpc.service in ASKS[service]]
    subjects += [event.on("*") for event in EVENTS if event.service == service]
    subjects += [out.on("*", "*", "*") for out in OUTS if out.service == service]
    if service in _JOB_TELLERS:
        subjects += [job.on("*") for job in JOBS]
    for stream, config in consumers(1):
        durable = config["durable_name"]
        if durable.startswith(f"{service}-"):
            subjects += [f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}", f"$JS.ACK.{stream}.{durable}.>", f"parked.{durable}"]
    subjects.append(f"$JS.API.STREAM.MSG.GET.{REVOKED}")
    if service in _WATCHERS:
        subjects.append("$JS.API.STREAM.MSG.GET.OUT")
    if service in _ERASERS:
        subjects += ["$JS.API.STREAM.PURGE.OUT", "$JS.API.STREAM.MSG.GET.PARKED", "$JS.API.STREAM.MSG.DELETE.PARKED"]
    if service == "gateway":
        subjects += [*_bucket(UPLOADS), f"{REVOKED_SUBJECT}.*"]
        # what each process knows of itself, those of its own service too
        subjects += [table[name].on_each("*") for table in (HEALTH, SPANS) for name in SERVICES]
    if service == "media":
        subjects += _bucket(UPLOADS) + _bucket(MEDIA)
    if service == "memory":
        subjects += _bucket(BACKUPS)
    return subjects


def subscribe_subjects(service: str) -> list[str]:
    subjects = [f"{INBOX}.{service}.>", f"{REVOKED_SUBJECT}.*"]
    subjects += [rpc.on("*") for rpc in RPCS if rpc.service == service]
    subjects += [table[service].on_each("*") for table in (HEALTH, SPANS)]
    subjects += [event.on("*") for event in EVENTS if service in event.hearers]
    if service in _WATCHERS:
        subjects += [out.on("*", "*", "*") for out in OUTS]
    return subjects


def operator_subjects() -> list[str]:
    """Subjects that the operator may publish to: to record events, to publish them again, and to use the bucket of media."""
    consumer = f"{RECORDED}.{OPERATOR}"
    return [
        "evt.>",
        f"$JS.API.STREAM.INFO.{RECORDED}",
        f"$JS.API.STREAM.PURGE.{RECORDED}",
        *(f"$JS.API.CONSUMER.{what}.{consumer}" for what in ("CREATE", "INFO", "DELETE", "MSG.NEXT")),
        f"$JS.ACK.{consumer}.>",
        *_bucket(MEDIA),
    ]


def users(passwords: Mapping[str, str], issuer: str | None) -> str:
    """The part of a server's configuration that says who there is and what each may do.

    Args:
        passwords: of each service, of the declaring program and of the operator, as the configuration writes them: a quoted
            text, or the name of a variable.
        issuer: who lets outside systems in, as `Issuer.name` says, or a variable; without one they stay out.
    """
    named = [_user(name, passwords[name], publish_subjects(name), subscribe_subjects(name)) for name in SERVICES]
    heard = [f"{INBOX}.{DECLARE}.>", f"{REVOKED_SUBJECT}.*", ASKED]
    named.append(_user(DECLARE, passwords[DECLARE], ["$JS.API.>", ANSWERED], heard))
    named.append(_user(OPERATOR, passwords[OPERATOR], operator_subjects(), [f"{INBOX}.{OPERATOR}.>"]))
    system = _user(SYSTEM, passwords[DECLARE], list(SYSTEM_SUBJECTS), [f"{INBOX}.{SYSTEM}.>"])
    # Whoever is named here is let in by a password alone, also while nobody answers the broker's questions.
    trusted = json.dumps([*SERVICES, DECLARE, OPERATOR, SYSTEM])
    callout = f"auth_callout {{ issuer: {issuer}, auth_users: {trusted} }}" if issuer else ""
    lines = [
        f'accounts {{ "$SYS": {{ users: [ {system} ] }} }}',
        f"authorization {{ timeout: {_LOGIN_SECONDS}, users: [",
        ",\n".join(named),
        "]",
        callout,
        "}",
    ]
    return "\n".join(line for line in lines if line)


def server_config(*, port: int, store: str, passwords: dict[str, str], issuer: str | None = None) -> str:
    """The NATS server's configuration file, on the loopback interface.

    Args:
        issuer: who lets outside systems in, as `Issuer.name` says; without one they stay out.
    """
    return "\n".join(
        [
            "host: 127.0.0.1",
            f"port: {port}",
            *LIMITS,
            f"jetstream {{ store_dir: {json.dumps(store)} }}",
            users({name: json.dumps(password) for name, password in passwords.items()}, issuer),
            "",
        ]
    )


def _user(name: str, password: str, may_publish: list[str], may_subscribe: list[str]) -> str:
    permissions = {"publish": {"allow": may_publish}, "subscribe": {"allow": may_subscribe}}
    return f"{{ user: {name}, password: {password}, permissions: {json.dumps(permissions, indent=2)} }}"


USERS_FILE = "secrets/nats-users.conf"
"""Where the server reads what is secret, beside its configuration."""
ISSUER = "admission"
"""Variable with the public key of whoever lets outside systems in."""
_GIB = 1024**3


def password_variable(user: str) -> str:
    return f"password_{user}"


def deployment_config() -> str:
    """The file. It reads `secrets/nats-users.conf` beside it, and takes JetStream's folder from `NATS_STORE_DIR`."""
    reserved = sum(int(config["max_bytes"]) for config in streams())
    return "\n".join(
        [
            f'include "{USERS_FILE}"',
            "port: 4222",
            "http_port: 8222",
            *LIMITS,
            # What the streams reserve, rounded up, and one more: a stream that is added needs no other number here.
            f"jetstream {{ store_dir: $NATS_STORE_DIR, max_mem: 64MB, max_file: {reserved // _GIB + 2}GB }}",
            users({name: f"${password_variable(name)}" for name in (*SERVICES, DECLARE, OPERATOR)}, f"${ISSUER}"),
            "",
        ]
    )


def users_config(hashes: dict[str, str], issuer: str) -> str:
    """The file with the users' secrets.

    Args:
        hashes: bcrypt hash of each password, by user.
        issuer: who lets outside systems in, as `Issuer.name` says.
    """
    lines = [f'{password_variable(user)}: "{value}"' for user, value in hashes.items()]
    return "\n".join([*lines, f'{ISSUER}: "{issuer}"', ""])
