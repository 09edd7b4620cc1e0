"""A Neo4j Community server from its archives, which speaks Bolt and nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from .layout import write_atomically
from .loopback import LOOPBACK, speaks_bolt
from .processes import Program

NAME = "neo4j"
DATABASE = "neo4j"
"""The one database of users' data that Community has."""
USER = "neo4j"
"""In Community every user may do all, so there is one."""
_HEAP, _PAGES = "1g", "256m"
_HASH_ROUNDS = 1024
_OPENED = ("java.nio", "java.io", "sun.nio.ch")
_MAIN = "org.neo4j.server.CommunityEntryPoint"


def archives(home: Path) -> bool:
    """Whether Neo4j's archives stand in `home`."""
    return any((home / "lib").glob("neo4j-server-*.jar"))


def java(environment: Mapping[str, str]) -> Path | None:
    """The Java that a child with this environment would run; `None` where there is none."""
    if home := environment.get("JAVA_HOME"):
        return Path(home) / "bin" / "java"
    found = shutil.which("java", path=environment.get("PATH"))
    return Path(found) if found else None


def class_archive(home: Path) -> Path:
    """Where the classes of a server that has run may stand, as Java reads them in a moment; it halves the work of a start."""
    return home / "classes.jsa"


def program(home: Path, folder: Path, port: int, password: str, log: Path, environment: Mapping[str, str]) -> Program:
    """The server with one database and one user."""

    async def prepare() -> None:
        await asyncio.to_thread(_prepare, folder, port, password)

    async def ready() -> bool:
        return await speaks_bolt(port)

    command = [
        str(java(environment) or "java"),
        "-cp",
        f"{home}/lib/*",
        "-Xms256m",
        f"-Xmx{_HEAP}",
        *_shared(home),
        "-XX:+ExitOnOutOfMemoryError",
        *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED),
        "-Dfile.encoding=UTF-8",
        "-Dlog4j2.formatMsgNoLookups=true",
        _MAIN,
        "--console-mode",  # its own log goes where every part's goes
        f"--home-dir={folder}",
        f"--config-dir={folder / 'conf'}",
    ]
    return Program(
        NAME, command, log, environment, ready, prepare, folder=folder, stop_within=20, ready_within=150, recovers=True
    )


def _shared(home: Path) -> list[str]:
    return [f"-XX:SharedArchiveFile={class_archive(home)}"] if class_archive(home).exists() else []


def _settings(folder: Path, port: int) -> dict[str, str]:
    return {
        "server.directories.data": str(folder / "data"),
        "server.directories.logs": str(folder / "logs"),
        "server.directories.import": str(folder / "import"),
        "server.directories.plugins": str(folder / "plugins"),
        "server.default_listen_address": LOOPBACK,
        "server.bolt.listen_address": f"{LOOPBACK}:{port}",
        "server.bolt.advertised_address": f"{LOOPBACK}:{port}",
        "server.http.enabled": "false",
        "server.https.enabled": "false",
        # A query opens no file and no address: the import folder is empty, and every address is forbidden.
        "dbms.security.allow_csv_import_from_file_urls": "false",
        "internal.dbms.cypher_ip_blocklist": "0.0.0.0/0,::/0",
        "dbms.security.procedures.allowlist": "db.labels,dbms.components",  # of plugins none; built-in ones it does not bind
        "dbms.usage_report.enabled": "false",
        "server.memory.pagecache.size": _PAGES,
        "dbms.memory.transaction.total.max": "512m",
        "db.memory.transaction.max": "256m",
        "internal.dbms.bolt.netty_server_shutdown_quiet_period": "0",  # else a stop waits ten seconds for nobody
        "internal.dbms.bolt.netty_server_shutdown_timeout": "2",
        "db.transaction.timeout": "60s",  # longer than any of the service's own limits
        "db.lock.acquisition.timeout": "10s",
        "db.logs.query.enabled": "OFF",
        "db.tx_log.preallocate": "false",  # 256 MB for each of its databases, before the first write
        "db.tx_log.rotation.retention_policy": "2 files",
    }


def _prepare(folder: Path, port: int, password: str) -> None:
    for name in ("conf", "import", "plugins", "logs", "data/dbms"):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = (f"{name}={value}\n" for name, value in _settings(folder, port).items())
    write_atomically(folder / "conf" / "neo4j.conf", "".join(lines))
    if not (folder / "data" / "databases").exists():
        # What the server's own tool for the first password writes; that takes it as an argument, for all to see.
        write_atomically(folder / "data" / "dbms" / "auth.ini", _user(password))


def _user(password: str) -> str:
    salt = secrets.token_bytes(32)
    digest = salt + password.encode()
    for _ in range(_HASH_ROUNDS):
        digest = hashlib.sha256(digest).digest()
    return f"{USER}:SHA-256,{digest.hex()},{salt.hex()},{_HASH_ROUNDS}:\n"
