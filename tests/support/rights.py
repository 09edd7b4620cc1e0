"""Who may do what on the bus, written down a second time: from the contracts and the arrows of the architecture alone.

Nothing here comes from the code that makes the permissions, so that a slip there is seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from phronesis_contracts import Principal, Role
from phronesis_contracts.catalog import EVENTS, JOBS, OUTS, RPCS, TOOLS

ARROWS = {
    "gateway": {"orchestrator", "memory", "instructions", "graph", "media"},
    "orchestrator": {"memory", "instructions", "graph", "media"},
    "memory": {"graph"},
    "instructions": set(),
    "graph": set(),
    "media": set(),
}
STREAMS = ("JOB", "OUTSIDE", "EVT", "OUT", "PARKED", "REVOKED", "OBJ_uploads", "OBJ_media", "OBJ_constitution")
_BUCKETS = {"gateway": ("uploads",), "media": ("uploads", "media"), "memory": ("constitution",)}
_OF_EACH = ("health", "spans")
"""What every process of a service answers for itself."""
_RPCS = {*RPCS, *(tool.rpc for tool in TOOLS.values())}


def may_publish(user: str) -> list[str]:
    """Patterns of what `user` may publish to."""
    if user == "system":
        return ["$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.SERVER.*.KICK"]
    if user == "declare":
        return ["$JS.API.>", "$SYS._INBOX.>"]
    if user == "operator":
        recording = [f"$JS.API.CONSUMER.{call}.EVT.operator" for call in ("CREATE", "INFO", "DELETE", "MSG.NEXT")]
        stream = ["$JS.API.STREAM.INFO.EVT", "$JS.API.STREAM.PURGE.EVT", "$JS.ACK.EVT.operator.>"]
        return ["evt.>", *stream, *recording, *_bucket("media")]
    found = ["_INBOX.>", "$JS.API.STREAM.MSG.GET.REVOKED"]
    found += [f"rpc.*.{rpc.subject}" for rpc in _RPCS if rpc.service in ARROWS[user]]
    found += [f"evt.*.{event.subject}" for event in EVENTS if event.subject.startswith(f"{user}.")]
    for stream, durable in consumers(user):
        found += [f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}", f"$JS.ACK.{stream}.{durable}.>", f"parked.{durable}"]
    for bucket in _BUCKETS.get(user, ()):
        found += _bucket(bucket)
    if user == "gateway":
        found += ["revoked.*", "$JS.API.STREAM.MSG.GET.OUT", *(f"job.*.{job.subject}" for job in JOBS)]
        found += [f"rpc.*.{service}.v1.{what}.each" for service in ARROWS for what in _OF_EACH]
    if user == "orchestrator":
        found += [f"out.*.{out.subject}.*.*" for out in OUTS]
        found += [f"$JS.API.STREAM.{call}" for call in ("PURGE.OUT", "MSG.GET.PARKED", "MSG.DELETE.PARKED")]
    return found


def may_hear(user: str) -> list[str]:
    """Patterns of what `user` may subscribe to."""
    found = [f"_INBOX.{user}.>"]
    if user in ("system", "operator"):
        return found
    found.append("revoked.*")
    if user == "declare":
        return [*found, "$SYS.REQ.USER.AUTH"]
    found += [f"rpc.*.{rpc.subject}" for rpc in _RPCS if rpc.subject.startswith(f"{user}.")]
    found += [f"rpc.*.{user}.v1.{what}.each" for what in _OF_EACH]
    found += [f"evt.*.{event.subject}" for event in EVENTS if user in event.hearers]
    if user == "gateway":
        found += [f"out.*.{out.subject}.*.*" for out in OUTS]
    return found


def of_outside_system(who: Principal) -> tuple[list[str], list[str]]:
    """What an outside system may publish to, and what it may subscribe to."""
    tools = [f"rpc.{who.tenant}.{tool.rpc.subject}" for tool in TOOLS.values() if tool.open_to(who)]
    turns = f"orchestrator.v1.turn.{who.user}"
    jobs = [] if who.role is Role.READER else [f"job.{who.tenant}.{turns}"]
    return [*jobs, *tools], [f"out.{who.tenant}.{turns}.>", f"_INBOX.out.{who.key}.>"]


def consumers(user: str) -> list[tuple[str, str]]:
    """Stream and name of each durable consumer of `user`."""
    taken = [job.subject for job in JOBS if job.subject.startswith(f"{user}.")]
    followed = [("EVT", event.subject) for event in EVENTS if user in event.followers]
    found = [*(("JOB", subject) for subject in taken), *(("OUTSIDE", subject) for subject in taken), *followed]
    return [(stream, f"{user}-{subject.replace('.', '-')}") for stream, subject in found]


def _bucket(name: str) -> list[str]:
    stream = f"OBJ_{name}"
    api = ("STREAM.INFO.{}", "STREAM.PURGE.{}", "STREAM.MSG.GET.{}", "DIRECT.GET.{}.>")
    reading = ("CONSUMER.CREATE.{}", "CONSUMER.CREATE.{}.>", "CONSUMER.DELETE.{}.>")
    calls = [f"$JS.API.{call.format(stream)}" for call in api + reading]
    return [f"$O.{name}.>", "$JS.API.STREAM.NAMES", *calls, f"$JS.FC.{stream}.>", f"$JS.ACK.{stream}.>"]


def covers(pattern: str, subject: str) -> bool:
    """Whether all that `subject` stands for, wildcards included, is within `pattern`, as the broker sees it.

    A `*` at the end of a pattern permits a subscription with `>` there: to the broker that is a token like another. Patterns
    that end so (`revoked.*`, the progress of turns) have no subjects below them that anybody may publish to.
    """
    wanted, asked = pattern.split("."), subject.split(".")
    for place, token in enumerate(wanted):
        if token == ">":
            return len(asked) > place
        if place >= len(asked) or (token != "*" and asked[place] != token):
            return False
    return len(asked) == len(wanted)


def allowed(patterns: Iterable[str], subjects: Iterable[str]) -> set[str]:
    """Those of `subjects` that one of `patterns` covers."""
    known = list(patterns)
    return {subject for subject in subjects if any(covers(pattern, subject) for pattern in known)}


def messages(committed: str, users: Iterable[str]) -> list[str]:
    """Subjects to try a message on: of every contract and its neighbours, of the broker's own, of each name in the file."""
    named = [contract.subject for contract in (*_RPCS, *JOBS, *EVENTS, *OUTS)]
    kinds = ("rpc.{}.{}", "job.{}.{}", "job.{}.{}.ann", "evt.{}.{}", "out.{}.{}.ann.t1", "rpc.{}.{}.more", "{}.{}")
    found = [kind.format(tenant, subject) for kind in kinds for tenant in ("acme", "system") for subject in named]
    found += [f"{kind}.acme.{user}.{rest}" for kind in ("rpc", "evt", "job", "out") for user in users for rest in _UNDECLARED]
    found += [f"_INBOX.{name}.x" for name in (*users, "out.k1")]
    for stream in STREAMS:
        found += [f"$JS.API.{call}.{stream}" for call in _STREAM_CALLS] + [
            f"$JS.API.DIRECT.GET.{stream}.x",
            f"$JS.FC.{stream}.x",
        ]
        for user in users:
            durables = [durable for of, durable in consumers(user) if of == stream] or [f"{user}-mine"]
            found += [f"$JS.API.CONSUMER.{call}.{stream}.{durable}" for call in _CONSUMER_CALLS for durable in durables]
            found += [f"$JS.ACK.{stream}.{durable}.1.1.1.1.0" for durable in durables]
            found += [f"parked.{durable}" for durable in durables]
    found += [f"$O.{bucket}.{part}.x" for bucket in ("uploads", "media", "constitution", "other") for part in "CM"]
    return list(dict.fromkeys([*found, *_BROKERS_OWN, *map(_one, patterns(committed))]))


def subscriptions(committed: str, users: Iterable[str]) -> list[str]:
    """Subjects to try a subscription to: what messages are tried on, what the file names, and all that is wider."""
    narrow = [*messages(committed, users), *patterns(committed)]
    wide = []
    for subject in narrow:
        tokens = subject.split(".")
        wide += [".".join([*tokens[:length], ">"]) for length in range(1, len(tokens))]
        wide += [".".join(["*", *tokens[1:]]), ".".join([tokens[0], "*", *tokens[2:]])]
    return list(dict.fromkeys([*narrow, *wide, ">", "*", "*.>", "*.*"]))


def patterns(committed: str) -> list[str]:
    """Every subject that the server's configuration allows anybody anything on."""
    return re.findall(r'^ {6}"(.+)",?$', committed, re.MULTILINE)


def _one(pattern: str) -> str:
    return ".".join({"*": "acme", ">": "x.y"}.get(token, token) for token in pattern.split("."))


_UNDECLARED = ("v1.undeclared", "v2.health", "v1", "v1.health.more", "v1.audited.more")
_STREAM_CALLS = (
    *("STREAM.CREATE", "STREAM.UPDATE", "STREAM.DELETE", "STREAM.PURGE", "STREAM.INFO", "STREAM.MSG.GET", "STREAM.MSG.DELETE"),
    *("STREAM.SNAPSHOT", "STREAM.RESTORE", "STREAM.LEADER.STEPDOWN", "STREAM.PEER.REMOVE"),
    *("DIRECT.GET", "CONSUMER.CREATE", "CONSUMER.NAMES", "CONSUMER.LIST"),
)
_CONSUMER_CALLS = ("MSG.NEXT", "INFO", "CREATE", "DURABLE.CREATE", "DELETE", "PAUSE", "RESET", "UNPIN", "LEADER.STEPDOWN")
_BROKERS_OWN = (
    *("$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.STREAM.CREATE.MINE", "$JS.API.ACCOUNT.PURGE.x"),
    *("$JS.API.META.LEADER.STEPDOWN", "$JS.EVENT.ADVISORY.STREAM.CREATED.x", "$KV.x.y", "$SRV.PING", "$MQTT.x", "anything"),
    *("$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.SERVER.x.KICK", "$SYS.REQ.SERVER.x.RELOAD"),
    *("$SYS.REQ.USER.AUTH", "$SYS.REQ.USER.INFO", "$SYS._INBOX.x", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.CLAIMS.LIST"),
    *("revoked.k1", "revoked.k1.more", "_INBOX", "parked", "$G.x"),
)
