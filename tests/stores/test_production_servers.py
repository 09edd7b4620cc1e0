"""Neo4j and Weaviate as a local stack runs them: who is let in, what is listened on, what a restart keeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import psutil
import pytest
from neo4j import AsyncDriver, AsyncGraphDatabase
from neo4j.exceptions import AuthError, ClientError

from phronesis_local.settings import Stores
from tests.support.production import STORES
from tests.support.production_servers import Neo4jServer, WeaviateServer
from tests.support.servers import Login

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(STORES is Stores.EMBEDDED, reason="the embedded stores are run; see make test-stores"),
]


@asynccontextmanager
async def weaviate(folder: Path) -> AsyncIterator[WeaviateServer]:
    server = WeaviateServer(folder)
    await server.start()
    yield server
    await server.stop()


def asking(server: WeaviateServer, key: str | None) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.AsyncClient(base_url=server.url, headers=headers, timeout=30)


async def test_two_servers_run_side_by_side_and_each_takes_its_own_key_alone(tmp_path: Path) -> None:
    async with AsyncExitStack() as opened:
        one, other = [await opened.enter_async_context(weaviate(tmp_path / name)) for name in ("one", "other")]
        for key, status in ((one.key, 200), (other.key, 401), (None, 401)):
            async with asking(one, key) as client:
                assert (await client.get("/v1/schema")).status_code == status


async def test_what_is_stored_is_there_after_a_restart_on_other_ports(tmp_path: Path) -> None:
    name = f"Kept{uuid4().hex}"
    async with weaviate(tmp_path / "data") as first, asking(first, first.key) as client:
        assert (await client.post("/v1/schema", json={"class": name, "vectorizer": "none"})).status_code == 200
        await first.kill()
    async with weaviate(tmp_path / "data") as second, asking(second, second.key) as client:
        assert second.ports != first.ports
        assert (await client.get(f"/v1/schema/{name}")).status_code == 200


async def test_a_class_that_nobody_declared_is_not_made(tmp_path: Path) -> None:
    async with weaviate(tmp_path / "data") as server, asking(server, server.key) as client:
        refused = await client.post("/v1/objects", json={"class": "Unknown", "properties": {"text": "x"}})
        assert (refused.status_code, (await client.get("/v1/schema")).json()["classes"]) == (422, [])


@pytest.fixture(scope="module")
async def neo4j(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Neo4jServer]:
    server = Neo4jServer(tmp_path_factory.mktemp("neo4j"))
    await server.start()
    yield server
    await server.stop()


@asynccontextmanager
async def bolt(server: Neo4jServer, login: Login | None = None) -> AsyncIterator[AsyncDriver]:
    login = login or server.root
    async with AsyncGraphDatabase.driver(server.url, auth=(login.user, login.password)) as driver:
        yield driver


async def test_the_password_holds_from_the_first_start_and_no_other_does(neo4j: Neo4jServer) -> None:
    async with bolt(neo4j) as driver:
        await driver.verify_authentication()
    for wrong in ("neo4j", "", neo4j.root.password[:-1]):
        async with bolt(neo4j, Login(neo4j.root.user, wrong)) as driver:
            with pytest.raises((AuthError, ClientError)):
                await driver.verify_connectivity()


async def test_a_query_opens_no_file_and_no_address(neo4j: Neo4jServer) -> None:
    async with bolt(neo4j) as driver:
        for address in ("file:///etc/passwd", "http://127.0.0.1:1/x", "ftp://127.0.0.1/x", "https://169.254.169.254/"):
            with pytest.raises(ClientError, match="Cannot load from URL"):
                await driver.execute_query(f"LOAD CSV FROM '{address}' AS row RETURN row", database_="neo4j")


async def test_neo4j_listens_on_the_loopback_interface_for_bolt_alone(neo4j: Neo4jServer) -> None:
    found = await asyncio.to_thread(_listening, neo4j)
    assert {(address.removeprefix("::ffff:"), port) for address, port in found} == {("127.0.0.1", neo4j.port)}


def _listening(server: Neo4jServer) -> set[tuple[str, int]]:
    assert server.pid is not None
    connections = psutil.Process(server.pid).net_connections()
    return {(each.laddr.ip, each.laddr.port) for each in connections if each.status == psutil.CONN_LISTEN}
