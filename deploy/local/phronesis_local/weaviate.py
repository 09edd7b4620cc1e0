"""A Weaviate server with one key, and no part of it that reaches out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .loopback import LOOPBACK, free_port, http_status
from .processes import Program

NAME = "weaviate"
USER = "phronesis"
"""Whose key it takes."""
_NODE = "node1"
_PROCESSORS = 4


@dataclass(frozen=True)
class Ports:
    """Where the server listens. It binds `grpc` and `data` on every interface, and cannot be told otherwise."""

    http: int
    grpc: int
    gossip: int
    data: int
    raft: int

    @classmethod
    def free(cls) -> Ports:
        """Ports that nobody listens on. Raises `OSError`: there are not enough of them."""
        return cls(free_port(), free_port(), free_port(), free_port(), free_port(2))

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.http}"

    @property
    def grpc_url(self) -> str:
        return f"http://{LOOPBACK}:{self.grpc}"


def program(binary: Path, folder: Path, ports: Ports, key: str, log: Path, environment: Mapping[str, str]) -> Program:
    """The server, alone in its cluster."""

    async def prepare() -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def ready() -> bool:
        return await answers(ports.http)

    command = [str(binary), "--host", LOOPBACK, "--port", str(ports.http), "--scheme", "http"]
    settings = {**environment, **settings_of(folder, ports, key)}
    return Program(NAME, command, log, settings, ready, prepare, folder=folder, stop_within=20, ready_within=90, recovers=True)


async def answers(port: int) -> bool:
    """Whether the server that listens on `port` takes questions."""
    return await http_status(port, "/v1/.well-known/ready") == 200


def settings_of(folder: Path, ports: Ports, key: str) -> dict[str, str]:
    """The variables that the server reads, all of them."""
    return {
        "PERSISTENCE_DATA_PATH": str(folder),
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
        "AUTHENTICATION_APIKEY_ENABLED": "true",
        "AUTHENTICATION_APIKEY_ALLOWED_KEYS": key,
        "AUTHENTICATION_APIKEY_USERS": USER,
        "AUTHORIZATION_ADMINLIST_ENABLED": "true",
        "AUTHORIZATION_ADMINLIST_USERS": USER,
        "GRPC_PORT": str(ports.grpc),
        "CLUSTER_HOSTNAME": _NODE,
        "CLUSTER_IN_LOCALHOST": "true",
        "CLUSTER_ADVERTISE_ADDR": LOOPBACK,
        "CLUSTER_BIND_ADDR": LOOPBACK,
        "CLUSTER_GOSSIP_BIND_PORT": str(ports.gossip),
        "CLUSTER_DATA_BIND_PORT": str(ports.data),
        "CLUSTER_BASIC_AUTH_USERNAME": USER,  # the port between the nodes of a cluster takes the key too
        "CLUSTER_BASIC_AUTH_PASSWORD": key,
        "RAFT_PORT": str(ports.raft),
        "RAFT_INTERNAL_RPC_PORT": str(ports.raft + 1),  # what a node on the loopback interface takes it for, whatever is set
        "RAFT_BOOTSTRAP_EXPECT": "1",
        "RAFT_TIMEOUTS_MULTIPLIER": "1",  # alone it has no one to wait for before it leads
        "DEFAULT_VECTORIZER_MODULE": "none",
        "ENABLE_MODULES": "",
        "API_BASED_MODULES_DISABLED": "true",
        "AUTOSCHEMA_ENABLED": "false",  # a class that nobody declared is a mistake
        "DISABLE_TELEMETRY": "true",
        "PROMETHEUS_MONITORING_ENABLED": "false",
        "GO_PROFILING_DISABLE": "true",  # it would listen on every interface, on a fixed port
        "DISK_USE_WARNING_PERCENTAGE": "95",
        "DISK_USE_READONLY_PERCENTAGE": "98",  # at 90, the default, a laptop's disk has room for years
        "GOMAXPROCS": str(min(_PROCESSORS, os.cpu_count() or 1)),
        "LOG_LEVEL": "warning",
    }
