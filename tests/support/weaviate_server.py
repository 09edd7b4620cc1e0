"""A real Weaviate for the tests, on free ports with its files in a temporary folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from phronesis.local.child import Child, Program
from phronesis.local.environment import inherited
from phronesis.local.http import status_of
from phronesis.local.ports import LOOPBACK, free_port
from phronesis.memory.settings import WeaviateSettings

PRODUCTION = os.environ.get("PHRONESIS_STORES") == "production"
"""Whether the suites run on production's stores too."""


def binary() -> str:
    """The server's program, which `PHRONESIS_WEAVIATE` names.

    Raises:
        FileNotFoundError: it is not there.
    """
    found = shutil.which(os.environ.get("PHRONESIS_WEAVIATE", "weaviate-server"))
    if found is None:
        raise FileNotFoundError("weaviate-server is not installed; PHRONESIS_WEAVIATE names its path")
    return found


class WeaviateServer:
    """A Weaviate of one node, without modules."""

    def __init__(self, folder: Path) -> None:
        self._port, grpc = free_port(), free_port()
        self.url = f"http://{LOOPBACK}:{self._port}"
        self.grpc_url = f"http://{LOOPBACK}:{grpc}"
        self.settings = WeaviateSettings(url=self.url, grpc_url=self.grpc_url)
        command = [binary(), "--host", LOOPBACK, "--port", str(self._port), "--scheme", "http"]
        environment = inherited() | _environment(folder, grpc)
        self._child = Child(Program("weaviate", command, folder / "log", environment, self._ready, ready_within=60))

    async def start(self) -> None:
        """Start it on its ports and its data."""
        await self._child.start()
        await self._child.wait_ready()

    async def kill(self) -> None:
        """End it at once."""
        self._child.kill()

    async def stop(self) -> None:
        """Stop it in order."""
        await self._child.stop()

    async def _ready(self) -> bool:
        return await status_of(self._port, "/v1/.well-known/ready") == 200


def _environment(folder: Path, grpc: int) -> dict[str, str]:
    gossip, data, raft = (free_port() for _ in range(3))
    return {
        "PERSISTENCE_DATA_PATH": str(folder / "data"),
        "GRPC_PORT": str(grpc),
        "DEFAULT_VECTORIZER_MODULE": "none",
        "AUTOSCHEMA_ENABLED": "false",
        "DISABLE_TELEMETRY": "true",
        "CLUSTER_HOSTNAME": "node1",
        "CLUSTER_IN_LOCALHOST": "true",
        "CLUSTER_ADVERTISE_ADDR": LOOPBACK,
        "CLUSTER_BIND_ADDR": LOOPBACK,
        "CLUSTER_GOSSIP_BIND_PORT": str(gossip),
        "CLUSTER_DATA_BIND_PORT": str(data),
        "RAFT_PORT": str(raft),
        "RAFT_INTERNAL_RPC_PORT": str(raft + 1),  # a node on the loopback interface takes it for that, whatever is set
        "RAFT_BOOTSTRAP_EXPECT": "1",
        "RAFT_TIMEOUTS_MULTIPLIER": "1",  # alone it has no one to wait for before it leads
        "GO_PROFILING_DISABLE": "true",
        "LOG_LEVEL": "warning",
    }
