"""The embedded stack as a whole: it starts, mends itself, keeps its data, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from neo4j import AsyncGraphDatabase, AsyncManagedTransaction

from phronesis_local import arcadedb, postgres
from phronesis_local.doctor import examine
from phronesis_local.layout import DataDir, ProcessId, read_record
from phronesis_local.settings import LocalSettings, Stores
from phronesis_local.status import all_up, status
from tests.support.production import GRAPH, GRAPH_DATABASE, SERVERS, STORES, graph_login
from tests.support.servers import NatsServer
from tests.support.stack import RunningStack, running

pytestmark = pytest.mark.verify


@pytest.fixture(scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningStack]:
    """The servers under a supervisor."""
    async with running(tmp_path_factory.mktemp("stack")) as stack:
        yield stack


async def _cypher(data: DataDir, user: str, query: str) -> list[list[object]]:
    async def work(transaction: AsyncManagedTransaction) -> list[list[object]]:
        return await (await transaction.run(query)).values()

    record = read_record(data)
    assert record is not None
    assert record.bolt is not None
    async with AsyncGraphDatabase.driver(record.bolt, auth=graph_login(data, user)) as driver:
        async with driver.session(database=GRAPH_DATABASE) as session:
            return await session.execute_write(work)


async def test_everything_is_up_with_its_process_and_memory(servers: RunningStack) -> None:
    found = status(servers.data)
    assert all_up(found)
    assert [part["name"] for part in found["parts"]] == ["supervisor", *sorted(SERVERS)]
    assert all(part["pid"] and part["memory_mb"] for part in found["parts"])


async def test_a_second_start_says_who_runs_and_is_refused(servers: RunningStack) -> None:
    second = servers.launch()
    said, _ = await asyncio.to_thread(second.communicate, timeout=20)
    record = read_record(servers.data)
    assert record is not None
    assert second.returncode == 2
    assert str(servers.pid) in said
    assert record.url in said
    assert record.supervisor.pid == servers.pid


@pytest.mark.parametrize("name", SERVERS)
async def test_a_killed_server_comes_back_where_it_was(servers: RunningStack, name: str) -> None:
    before = servers.part(name)
    assert before.process is not None
    servers.process(name).kill()
    record = await servers.until(lambda now: now.parts[name].state == "up" and now.parts[name].restarts == before.restarts + 1)
    after = record.parts[name]
    assert after.process != before.process
    assert after.port == before.port
    if name == postgres.NAME:
        connection = await asyncpg.connect(postgres.dsn(servers.data.postgres))
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()


@pytest.mark.skipif(STORES is Stores.PRODUCTION, reason="Neo4j Community has no user who may only read")
async def test_the_reader_of_the_graph_reads_and_cannot_write(servers: RunningStack) -> None:
    await _cypher(servers.data, arcadedb.ROOT, "CREATE (p:Seen {name: 'a'})")
    assert await _cypher(servers.data, arcadedb.READER, "MATCH (p:Seen) RETURN p.name") == [["a"]]
    with pytest.raises(Exception, match="Forbidden"):
        await _cypher(servers.data, arcadedb.READER, "CREATE (p:Seen {name: 'b'})")
    assert await _cypher(servers.data, arcadedb.READER, "MATCH (p:Seen) RETURN p.name") == [["a"]]


async def test_the_graph_store_opens_no_files_and_no_addresses_for_a_query(servers: RunningStack) -> None:
    for address in ("file:///etc/passwd", "http://127.0.0.1:1/x"):
        with pytest.raises(Exception, match=r"Forbidden|Cannot load from URL"):
            await _cypher(servers.data, arcadedb.ROOT, f"LOAD CSV FROM '{address}' AS row RETURN row")


async def test_the_doctor_finds_the_servers_well(servers: RunningStack) -> None:
    found = {finding.what: finding for finding in await asyncio.to_thread(examine, servers.data, LocalSettings())}
    assert {found[f"{name} server"].found for name in SERVERS} == {"answers"}
    assert found["parked messages"].found == "0"


async def test_secrets_are_their_owners_alone_and_stand_in_no_other_file(servers: RunningStack) -> None:
    data = servers.data
    private = set(data.private_files())
    assert len(private) > 8
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in private} == {0o700}
    secrets = {path.read_text().strip().encode() for path in (data.key, *data.secrets.iterdir(), *data.roles.iterdir())}
    arguments = " ".join(" ".join(process.cmdline()) for process in servers.left()).encode()
    assert [secret for secret in secrets if secret in arguments] == []
    files = {path for path in data.root.rglob("*") if path.is_file() and not path.is_symlink()}
    assert {path for path in files if any(secret in path.read_bytes() for secret in secrets)} <= private


def test_a_recycled_number_is_not_taken_for_the_process_that_had_it() -> None:
    me = ProcessId.of(os.getpid())
    assert me is not None
    assert me.process() is not None
    assert me.model_copy(update={"created": me.created - 60}).process() is None


async def test_data_outlives_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        key = stack.data.key.read_text()
        connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
        await connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
        await connection.close()
        await _cypher(stack.data, arcadedb.ROOT, "CREATE (k:Kept {value: 7})")
    assert stack.left() == []
    async with running(tmp_path) as stack:
        connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
        assert await connection.fetchval("SELECT value FROM kept") == 7
        await connection.close()
        assert await _cypher(stack.data, arcadedb.READER, "MATCH (k:Kept) RETURN k.value") == [[7]]
        assert stack.data.key.read_text() == key
    assert stack.left() == []


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.any_store), signal.SIGTERM])
async def test_a_signal_stops_everything_in_order(tmp_path: Path, number: signal.Signals) -> None:
    stack = RunningStack(tmp_path)
    await stack.start()
    assert stack.supervisor is not None
    stack.supervisor.send_signal(number)
    assert await asyncio.to_thread(stack.supervisor.wait, 30) == 0
    assert stack.left() == []
    assert not stack.data.record.exists()
    assert not (stack.data.postgres / "data" / "postmaster.pid").exists()


@pytest.mark.any_store
async def test_a_signal_during_the_start_leaves_nothing(tmp_path: Path) -> None:
    stack = RunningStack(tmp_path)
    stack.supervisor = stack.launch()
    await stack.until(lambda record: any(part.state == "starting" for part in record.parts.values()))
    stack.supervisor.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(stack.supervisor.wait, 30) == 0
    assert stack.left() == []


@pytest.mark.any_store
async def test_down_ends_what_a_killed_supervisor_left(tmp_path: Path) -> None:
    stack = RunningStack(tmp_path)
    await stack.start()
    assert stack.supervisor is not None
    stack.supervisor.kill()
    await asyncio.to_thread(stack.supervisor.wait, 10)
    assert len(stack.left()) > 3
    assert not all_up(status(stack.data))
    said = subprocess.run(
        [sys.executable, "-m", "phronesis_local", "down", "--data", str(tmp_path)], capture_output=True, text=True, timeout=50
    )
    assert (said.returncode, said.stdout) == (0, "stopped\n")
    assert stack.left() == []
    assert not stack.data.record.exists()


@pytest.mark.any_store
async def test_a_start_takes_over_from_a_killed_supervisor(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        assert stack.supervisor is not None
        before = {process.pid for process in stack.left()}
        stack.supervisor.kill()
        await asyncio.to_thread(stack.supervisor.wait, 10)
        await stack.start()
        assert all_up(status(stack.data))
        assert not before & {process.pid for process in stack.left()}


async def test_an_outside_server_is_not_started(tmp_path: Path, nats_server: NatsServer) -> None:
    outside = {"BUS_URL": nats_server.url, "GRAPH_URL": "bolt://127.0.0.1:1"}
    async with running(tmp_path, ("postgres", GRAPH), outside) as stack:
        record = read_record(stack.data)
        assert record is not None
        assert {name: part.state for name, part in record.parts.items()} == {
            "nats": "outside",
            GRAPH: "outside",
            "postgres": "up",
        }
        assert record.bolt == "bolt://127.0.0.1:1"


@pytest.mark.any_store
async def test_a_data_directory_with_a_long_name_works(tmp_path: Path) -> None:
    async with running(tmp_path / ("long" * 30), (postgres.NAME,)) as stack:
        connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
        assert await connection.fetchval("SHOW data_directory") == str(stack.data.postgres / "data")
        await connection.close()


@pytest.mark.any_store
async def test_a_server_that_cannot_start_is_told_with_its_reason(tmp_path: Path) -> None:
    stack = RunningStack(tmp_path, (postgres.NAME,))
    (stack.data.postgres / "data").mkdir(parents=True)
    (stack.data.postgres / "data" / "PG_VERSION").write_text("9.6\n")
    supervisor = stack.launch()
    said, _ = await asyncio.to_thread(supervisor.communicate, timeout=50)
    assert supervisor.returncode == 1
    assert "postgres" in said
    assert stack.left() == []


def _up(data: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "phronesis_local", "up", "--data", str(data), "--port", "0"]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, env=os.environ | environment)


@pytest.mark.parametrize(("before", "now"), [("embedded", "production"), ("production", "embedded")])
def test_a_stack_is_not_started_with_other_stores_than_it_was_begun_with(tmp_path: Path, before: str, now: str) -> None:
    (tmp_path / "stores").write_text(f"{before}\n")
    refused = _up(tmp_path, {"PHRONESIS_STORES": now})
    assert refused.returncode == 2
    assert f"was begun with the {before} stores" in refused.stdout
    assert "phronesis restore" in refused.stdout
    assert (tmp_path / "stores").read_text() == f"{before}\n"


def test_a_stack_from_before_stores_were_noted_holds_embedded_ones(tmp_path: Path) -> None:
    (tmp_path / "arcadedb").mkdir()
    refused = _up(tmp_path, {"PHRONESIS_STORES": "production"})
    assert (refused.returncode, "begun with the embedded stores" in refused.stdout) == (2, True)


def test_production_stores_that_are_not_there_are_named_with_what_to_do(tmp_path: Path) -> None:
    missing = {"PHRONESIS_NEO4J_HOME": str(tmp_path), "PHRONESIS_WEAVIATE": "", "JAVA_HOME": str(tmp_path)}
    refused = _up(tmp_path / "data", {"PHRONESIS_STORES": "production"} | missing)
    assert refused.returncode == 2
    told = ("Java for Neo4j: not installed", f"Neo4j: not in {tmp_path}", "Weaviate: not set", "set PHRONESIS_WEAVIATE to")
    assert [each for each in told if each not in refused.stdout] == []
    assert not (tmp_path / "data" / "stores").exists()
