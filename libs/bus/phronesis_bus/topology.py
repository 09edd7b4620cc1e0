"""The streams and durable consumers of the platform, as the broker's API takes them, made from the contracts."""

from __future__ import annotations

from typing import Any

from phronesis_contracts.catalog import EVENTS, JOBS
from phronesis_contracts.media import MAX_UPLOAD, UPLOADS

MEDIA = "media"
"""Bucket of accepted uploads and their text."""
BACKUPS = "constitution"
"""Bucket of backups of the constitutional graph."""
JOB_STREAMS = ("OUTSIDE", "JOB")
"""Where the jobs of outside systems wait, and the platform's own."""
REVOKED = "REVOKED"
"""Stream of the revoked keys of outside systems, one message for each, kept for longer than such a key is good."""
_DAY = 24 * 3600
_MIB = 1024**2  # the broker reserves a stream's greatest size when it is declared, so these fit a laptop's disk


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def _bucket(name: str, *, max_age: float = 0, max_bytes: int) -> dict[str, Any]:
    return {
        "name": f"OBJ_{name}",
        "subjects": [f"$O.{name}.C.>", f"$O.{name}.M.>"],
        "retention": "limits",
        "storage": "file",
        "discard": "new",
        "max_age": _nanoseconds(max_age),
        "max_bytes": max_bytes,
        "allow_rollup_hdrs": True,
        "allow_direct": True,
    }


def _queue(name: str, subjects: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "subjects": subjects,
        "retention": "workqueue",
        "storage": "file",
        "discard": "new",
        "max_msgs_per_subject": max(job.backlog for job in JOBS),
        "discard_new_per_subject": True,
        "max_bytes": 256 * _MIB,
        # An id of somebody else's message must not swallow this one; the broker takes no less than this.
        "duplicate_window": _nanoseconds(0.1),
    }


def streams(replicas: int = 1) -> list[dict[str, Any]]:
    """Every stream, as `STREAM.CREATE` takes it; consumers have as many copies as their stream.

    Args:
        replicas: servers of a cluster that keep a copy of each.
    """
    return [config | {"num_replicas": replicas} for config in _streams()]


def _streams() -> list[dict[str, Any]]:
    return [
        _queue("JOB", [job.on("*") for job in JOBS]),
        # The broker says that it stored a message on whatever reply subject the sender wrote there, with no regard to what
        # the sender may publish. So nothing is said to outside systems: they hear `accepted` or `refused` as progress.
        _queue("OUTSIDE", [job.from_outside("*", "*") for job in JOBS]) | {"no_ack": True},
        {
            "name": "EVT",
            "subjects": ["evt.>"],
            "retention": "interest",
            "storage": "file",
            "discard": "new",  # a full stream refuses: the outbox keeps what was refused
            "max_bytes": 1024 * _MIB,
            "duplicate_window": _nanoseconds(120),
        },
        {
            "name": "OUT",
            "subjects": ["out.>"],
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "max_age": _nanoseconds(3600),
            "max_bytes": 128 * _MIB,
        },
        {
            "name": "PARKED",
            "subjects": ["parked.>"],
            "retention": "limits",
            "storage": "file",
            "discard": "new",
            "max_age": _nanoseconds(30 * _DAY),
            "max_bytes": 256 * _MIB,
        },
        {
            "name": REVOKED,
            "subjects": ["revoked.*"],
            "retention": "limits",
            "storage": "file",
            "discard": "new",  # the oldest may not go: its key would be good again
            "max_msgs_per_subject": 1,
            "max_age": _nanoseconds(400 * _DAY),
            "max_bytes": 16 * _MIB,
        },
        _bucket(UPLOADS, max_age=3600, max_bytes=20 * MAX_UPLOAD),
        _bucket(MEDIA, max_bytes=4096 * _MIB),
        _bucket(BACKUPS, max_bytes=1024 * _MIB),
    ]


def consumers(ack_wait: float) -> list[tuple[str, dict[str, Any]]]:
    """Every durable pull consumer with its stream. Redelivery has no limit here: parking is the follower's deed."""
    found = [("JOB", j.durable, j.on("*")) for j in JOBS]
    found += [("OUTSIDE", j.durable, j.from_outside("*", "*")) for j in JOBS]
    found += [("EVT", e.durable(follower), e.on("*")) for e in EVENTS for follower in e.followers]
    return [
        (
            stream,
            {
                "durable_name": durable,
                "filter_subject": subject,
                "ack_policy": "explicit",
                "ack_wait": _nanoseconds(ack_wait),
                "deliver_policy": "all",
                "max_deliver": -1,
                "max_ack_pending": 1_000,
                "max_waiting": 512,
            },
        )
        for stream, durable, subject in found
    ]
