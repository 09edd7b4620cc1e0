"""The embedded ArcadeDB server, which speaks Bolt."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib.util
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .loopback import LOOPBACK, http_status, speaks_bolt
from .processes import Program

NAME = "arcadedb"
DATABASE = "twin"
ROOT = "root"
READER = "reader"
_HEAP = "512m"
_COMMAND_TIMEOUT = 20_000
_HASH_ROUNDS = 65_536
_GROUP = "readers"


@dataclass(frozen=True)
class Ports:
    """Where the server listens on the loopback interface."""

    bolt: int
    http: int


def home() -> Path:
    """The package's folder, with the Java runtime and the server's archives.

    Raises:
        FileNotFoundError: it is not installed.
    """
    spec = importlib.util.find_spec("arcadedb_embedded")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("arcadedb-embedded is not installed")
    return Path(spec.origin).parent


def program(folder: Path, ports: Ports, passwords: Mapping[str, str], log: Path, environment: Mapping[str, str]) -> Program:
    """The server with one database and two users: one that may do all, and one that may only read records."""

    async def prepare() -> None:
        await asyncio.to_thread(_write_security, folder / "config", passwords)

    async def ready() -> bool:
        return await http_status(ports.http, "/api/v1/ready") == 204 and await speaks_bolt(ports.bolt)

    command = _command(folder, ports)
    return Program(NAME, command, log, environment, ready, prepare, folder=folder, ready_within=60, recovers=True)


def _command(folder: Path, ports: Ports) -> list[str]:
    settings = {
        "server.rootPath": str(folder),
        "server.logsDirectory": str(folder / "log"),
        "server.mode": "production",
        "server.defaultDatabases": f"{DATABASE}[{ROOT}]",
        "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "server.httpIncomingHost": LOOPBACK,
        "server.httpIncomingPort": str(ports.http),
        "bolt.host": LOOPBACK,
        "bolt.port": str(ports.bolt),
        "bolt.defaultDatabase": DATABASE,
        "txWalFlush": "2",  # the default does not sync a commit to the disk
        "command.timeout": str(_COMMAND_TIMEOUT),  # the driver's own time-out does not bind the server
        "opencypher.loadCsv.allowFileUrls": "false",
        "opencypher.loadCsv.allowRemoteUrls": "false",
        "studio.enabled": "false",
        "support.autoRegister": "false",
    }
    return [
        str(home() / "jre" / "bin" / "java"),
        "--add-modules",
        "jdk.incubator.vector",
        f"-Xmx{_HEAP}",
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
        "-cp",
        str(home() / "jars" / "*"),
        *(f"-Darcadedb.{name}={value}" for name, value in settings.items()),
        "com.arcadedb.server.ArcadeDBServer",
    ]


def _write_security(folder: Path, passwords: Mapping[str, str]) -> None:
    # Written before the start, so that no password stands in the process list.
    folder.mkdir(parents=True, exist_ok=True)  # the working folder too: a relative `log` is written there
    everything = ["createRecord", "readRecord", "updateRecord", "deleteRecord"]
    groups = {
        "admin": _rights(["updateSecurity", "updateSchema", "updateDatabaseSettings"], everything),
        _GROUP: _rights([], ["readRecord"]),
        "*": _rights([], []),
    }
    (folder / "server-groups.json").write_text(json.dumps({"databases": {"*": {"groups": groups}}, "version": 2}))
    users = [
        {"name": ROOT, "databases": {"*": ["admin"]}, "password": _hash_password(passwords[ROOT])},
        {"name": READER, "databases": {DATABASE: [_GROUP]}, "password": _hash_password(passwords[READER])},
    ]
    path = folder / "server-users.jsonl"
    path.touch(mode=0o600)
    path.write_text("".join(json.dumps(user) + "\n" for user in users))


def _rights(database: list[str], records: list[str]) -> dict[str, object]:
    return {"resultSetLimit": -1, "readTimeout": -1, "access": database, "types": {"*": {"access": records}}}


def _hash_password(password: str) -> str:
    salt = base64.b64encode(secrets.token_bytes(32)).decode()
    digest = hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), _HASH_ROUNDS, 32)
    return f"PBKDF2WithHmacSHA256${_HASH_ROUNDS}${salt}${base64.b64encode(digest).decode()}"
