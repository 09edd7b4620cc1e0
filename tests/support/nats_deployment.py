"""The NATS server of a deployment: the committed files of `deploy/nats`, with secrets made as a deployment makes them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from phronesis_bus import BusSettings
from phronesis_bus.secrets import SIGNERS, make
from phronesis_local.layout import inherited_environment
from phronesis_local.loopback import LOOPBACK, free_port
from phronesis_local.nats import binary
from phronesis_local.processes import Child, Program
from tests.support.certificates import Authority
from tests.support.servers import NatsServer

FILES = Path(__file__).resolve().parents[2] / "deploy" / "nats"


class DeployedNats(NatsServer):
    """A server with the files of the deployment, unchanged; what a machine decides is told by flags and variables.

    Args:
        folder: of this server.
        secrets: of the deployment.
        config: which of the files it starts with.
        authority: whose certificates it and its clients have, where TLS is on.
        flags: more of the server's flags.
        verify: whether clients have to show a certificate.
    """

    def __init__(
        self,
        folder: Path,
        secrets: Path,
        config: str = "nats.conf",
        authority: Authority | None = None,
        *,
        flags: Sequence[str] = (),
        verify: bool = False,
    ) -> None:
        self.secrets = secrets
        self.authority = authority
        self.port, self.monitor, self.store = free_port(), free_port(), folder / "store"
        self.url = f"{'tls' if authority else 'nats'}://{LOOPBACK}:{self.port}"
        etc = folder / "etc"
        shutil.copytree(FILES, etc, ignore=shutil.ignore_patterns("*.md"))
        (etc / "secrets").symlink_to(secrets)
        environment = inherited_environment() | {"NATS_STORE_DIR": str(self.store)}
        if authority is not None:
            files = (*authority.issue(LOOPBACK), authority.ca_file)
            environment["NATS_TLS_VERIFY"] = str(verify).lower()
            environment |= dict(zip(("NATS_TLS_CERT", "NATS_TLS_KEY", "NATS_TLS_CA"), map(str, files), strict=True))
        where = ["-a", LOOPBACK, "-p", str(self.port), "-m", str(self.monitor)]
        command = [str(binary()), "-c", str(etc / config), *where, *flags]
        self._child = Child(Program("nats", command, folder / "log", environment, self._is_well))

    def settings(self, name: str) -> BusSettings:
        """How the service `name` connects, with the secrets as a deployment mounts them."""
        keys = {"declare": "admission.pem"} | {signer: f"signing-{signer}.key" for signer in SIGNERS}
        return BusSettings(
            url=self.url,
            ca_file=self.authority.ca_file if self.authority else None,
            password_file=self.secrets / f"nats-{name}.password",
            signing_key_file=self.secrets / keys[name] if name in keys else None,
            trust_dir=self.secrets / "trust",
            redelivery_delay=0.05,
            redelivery_limit=4,
            ack_wait=3,
        )

    async def bare(self) -> None:
        """Start it and declare nothing."""
        await self._child.start()
        await self._child.wait_ready()

    async def start(self) -> None:
        """Start it, and declare the streams."""
        await self.bare()
        await self.declare()

    def reload(self) -> None:
        """Let it read its files again."""
        assert self._child.pid is not None
        os.kill(self._child.pid, signal.SIGHUP)

    async def _is_well(self) -> bool:
        try:
            return (await self.http("/healthz")).split(b" ", 2)[1:2] == [b"200"]
        except (OSError, TimeoutError):
            return False

    async def http(self, path: str) -> bytes:
        """What its monitoring port answers."""
        async with asyncio.timeout(2):
            reader, writer = await asyncio.open_connection(LOOPBACK, self.monitor)
            try:
                writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                return await reader.read()
            finally:
                writer.close()


@asynccontextmanager
async def deployed(
    folder: Path, config: str = "nats.conf", authority: Authority | None = None, *, verify: bool = False
) -> AsyncIterator[DeployedNats]:
    """A started server of a test's own, with nothing declared."""
    make(folder / "secrets")
    server = DeployedNats(folder / "nats", folder / "secrets", config, authority, verify=verify)
    await server.bare()
    try:
        yield server
    finally:
        await server.kill()


class Wire:
    """A user on the plain protocol, which says at once what of many things the broker refuses."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @asynccontextmanager
    async def of(cls, server: NatsServer, user: str, password: str) -> AsyncIterator[Wire]:
        """The user, let in, for the length of a block."""
        reader, writer = await asyncio.open_connection(LOOPBACK, server.port, limit=1024 * 1024)
        try:
            await reader.readline()
            wire = cls(reader, writer)
            login = f'{{"verbose": false, "pedantic": false, "user": "{user}", "pass": "{password}"}}'
            assert await wire._refused([f"CONNECT {login}"], r"(.*)") == set()
            yield wire
        finally:
            writer.close()

    async def is_put_out(self) -> bool:
        """Whether the broker ended the connection."""
        try:
            self._writer.write(b"PING\r\n")
            async with asyncio.timeout(0.2):
                while await self._reader.readline():
                    pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    async def cannot_publish(self, subjects: Sequence[str]) -> set[str]:
        """Those of `subjects` that the broker refuses a message on."""
        return await self._refused([f"PUB {subject} 2\r\n{{}}" for subject in subjects], r'Publish to "(.*?)"')

    async def cannot_subscribe(self, subjects: Sequence[str], queue: str = "") -> set[str]:
        """Those of `subjects` that the broker refuses a subscription to."""
        lines = []
        for number, subject in enumerate(subjects, 1):
            lines += [f"SUB {subject} {queue} {number}", f"UNSUB {number}"]
        return await self._refused(lines, r'Subscription to "(.*?)"')

    async def _refused(self, lines: Sequence[str], pattern: str) -> set[str]:
        self._writer.write("".join(f"{line}\r\n" for line in [*lines, "PING"]).encode())
        found: set[str] = set()
        async with asyncio.timeout(20):
            await self._writer.drain()
            while (line := await self._reader.readline()) != b"PONG\r\n":
                assert line, "the broker ended the connection"
                if line.startswith(b"-ERR"):
                    match = re.search(pattern, line.decode())
                    assert match, line
                    found.add(match[1])
                elif line.startswith((b"MSG", b"HMSG")):
                    await self._reader.readexactly(int(line.split()[-1]) + 2)
        return found
