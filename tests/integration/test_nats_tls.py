"""TLS to the broker of a deployment: who is believed, who is refused, and what is never sent in the clear."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from phronesis_bus import Bus, BusSettings, UntrustedBroker, connect, revoke
from phronesis_local.loopback import LOOPBACK
from tests.support.bus import connected, eventually
from tests.support.certificates import Authority
from tests.support.nats_deployment import DeployedNats, deployed
from tests.support.outside import access, admitting, outside


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DeployedNats]:
    folder = tmp_path_factory.mktemp("tls")
    async with deployed(folder, "tls.conf", Authority(folder / "authority")) as server:
        await server.declare()
        yield server


async def refused(server: DeployedNats, **changes: Any) -> str:
    """What a service is told that does not get in."""
    settings = BusSettings(**(server.settings("memory").model_dump() | changes))
    with pytest.raises(UntrustedBroker) as raised:
        async with asyncio.timeout(20), connect("memory", settings):
            pass
    password = settings.password()
    assert password is not None
    assert password.get_secret_value() not in repr(raised.value) + repr(raised.value.__cause__)
    return str(raised.value)


@pytest.mark.req("K-096")
async def test_a_service_that_believes_the_authority_comes_in(server: DeployedNats) -> None:
    async with connected(server, "memory") as (memory,):
        await memory.ping()
        assert memory.revoked.known


async def test_a_service_that_believes_another_authority_stays_out(server: DeployedNats, tmp_path: Path) -> None:
    said = await refused(server, ca_file=Authority(tmp_path / "another").ca_file)
    assert said == "the broker's certificate is not believed: see BUS_CA_FILE, and the names in the certificate"


async def test_a_service_that_names_no_authority_believes_the_systems_alone(server: DeployedNats) -> None:
    assert "not believed" in await refused(server, ca_file=None)


async def test_a_certificate_for_another_name_is_not_believed(server: DeployedNats) -> None:
    assert "not believed" in await refused(server, url=server.url.replace(LOOPBACK, "localhost"))


async def test_a_file_that_is_missing_is_said_so(server: DeployedNats, tmp_path: Path) -> None:
    said = await refused(server, ca_file=tmp_path / "nothing.pem")
    assert said == "the files of BUS_CA_FILE, BUS_CERT_FILE and BUS_KEY_FILE cannot be used"


async def test_nothing_goes_in_the_clear_to_a_broker_that_wants_tls(server: DeployedNats) -> None:
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    try:
        assert b'"tls_required":true' in await reader.readline()
        writer.write(b'CONNECT {"user": "memory", "pass": "x"}\r\nPING\r\n')
        async with asyncio.timeout(10):
            assert b"PONG" not in await reader.read()
    except ConnectionResetError:
        pass  # the broker hung up before it was read
    finally:
        writer.close()


async def test_a_broker_without_tls_never_sees_the_password_of_a_service_that_wants_it() -> None:
    seen = bytearray()

    async def received(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"x","version":"2.15.1","headers":true,"max_payload":1048576}\r\n')
        seen.extend(await reader.read())
        writer.close()

    pretender = await asyncio.start_server(received, LOOPBACK, 0)
    port = pretender.sockets[0].getsockname()[1]
    with pytest.raises(UntrustedBroker, match="offers no TLS"):
        async with asyncio.timeout(20), connect("memory", BusSettings(url=f"tls://{LOOPBACK}:{port}")):
            pass
    pretender.close()
    assert bytes(seen) == b""


async def test_a_service_comes_in_again_after_the_broker_was_away(tmp_path: Path) -> None:
    async with deployed(tmp_path, "tls.conf", Authority(tmp_path / "authority")) as server:
        await server.declare()
        async with connected(server, "graph") as (graph,):
            await server.kill()
            await eventually(lambda: not graph.connected)
            await server.bare()
            await eventually(lambda: _answers(graph))


@pytest.mark.verify
async def test_where_the_broker_wants_certificates_only_one_of_its_authority_lets_in(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    async with deployed(tmp_path, "tls.conf", authority, verify=True) as server:
        cert_file, key_file = authority.issue("memory")
        own = {"cert_file": cert_file, "key_file": key_file}
        async with connected(server, "memory", **own) as (memory,):
            await memory.ping()
        assert "may want a certificate" in await refused(server)
        cert_file, key_file = Authority(tmp_path / "another").issue("memory")
        assert "may want a certificate" in await refused(server, cert_file=cert_file, key_file=key_file)


async def test_outside_systems_come_in_by_tls_and_are_put_out(server: DeployedNats) -> None:
    async with admitting(server), connected(server, "gateway") as (gateway,):
        who, made = access(gateway)
        async with outside(server, who, made) as system:
            await revoke(gateway, str(who.key))
            await eventually(lambda: system.nats.is_closed, within=15)


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "tls://a:4222,nats://b:4222"},
        {"url": "nats://a:4222", "ca_file": Path("ca.pem")},
        {"url": "tls://a:4222", "cert_file": Path("own.pem")},
        {"url": "tls://a:4222", "key_file": Path("own.key")},
    ],
)
def test_settings_that_would_not_protect_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        BusSettings(**wrong)


async def _answers(bus: Bus) -> bool:
    return bus.connected and bool(await bus.nats.flush(timeout=1) is None)
