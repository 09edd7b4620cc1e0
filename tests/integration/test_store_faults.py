"""Stores that refuse, reset, hang and crawl: an error of ours within the caller's limit, and no restart afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr

from phronesis_bus import Blobs, News, ask, connect, envelope, follow
from phronesis_contracts import NotFound, ServiceError, TimedOut, Unavailable
from phronesis_contracts.constitution.writes import CONSTITUTION_CHANGED, CREATE, ConstitutionChanged
from phronesis_contracts.media import UPLOADS
from phronesis_contracts.memory import AugmentedMemoryContext, Remember, RememberItem, Retrieve
from phronesis_graph.app import build as build_graph
from phronesis_graph.bolt.driver import Bolt
from phronesis_graph.settings import GraphSettings
from phronesis_local import postgres as embedded
from phronesis_memory.app import assemble
from phronesis_memory.embedding.remote import RemoteEmbedder
from phronesis_memory.items.handlers import ItemHandlers
from phronesis_memory.settings import MemorySettings
from phronesis_postgres import Database, PostgresSettings
from tests.support.bus import connected, eventually, somebody
from tests.support.memory import ScriptedGraph, WordEmbedder, calling, someone
from tests.support.personas import Persona
from tests.support.servers import GraphServer, NatsServer, PostgresServer
from tests.support.tcp_proxy import Mode, TcpProxy, tcp_proxy

pytestmark = pytest.mark.verify

MODES: tuple[Mode, ...] = ("refuse", "reset", "stall", "slow")
LIMIT = 0.5
"""Seconds that a caller gives a store here."""
SLACK = 4.0
"""Seconds over that limit in which the caller has its answer, on a busy machine; a statement's own limit is 10."""


@pytest.fixture
async def proxy(postgres: PostgresServer) -> AsyncIterator[TcpProxy]:
    async with tcp_proxy(_socket(postgres)) as opened:
        yield opened


@pytest.fixture
async def where(postgres: PostgresServer) -> AsyncIterator[PostgresSettings]:
    async with postgres.fresh_schema("orchestrator") as settings:
        yield settings


@pytest.fixture
async def database(proxy: TcpProxy, where: PostgresSettings) -> AsyncIterator[Database]:
    async with Database.open(_through(proxy, where), "orchestrator") as opened:
        yield opened


def _socket(postgres: PostgresServer) -> Path:
    return Path(postgres.dsn.partition("host=")[2]) / embedded._SOCKET


def _through(proxy: TcpProxy, where: PostgresSettings, **settings: float) -> PostgresSettings:
    address = where.dsn.get_secret_value().partition("?")[0]
    dsn = SecretStr(address.replace("@/", f"@127.0.0.1:{proxy.port}/"))
    return PostgresSettings(dsn=dsn, pool_size=3, **settings)  # type: ignore[arg-type]


async def limited(work: Awaitable[object]) -> str:
    """How work ends that has `LIMIT` seconds: the code of an error of ours, `timed_out` at the limit, or `fine`."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(LIMIT):
            await work
        end = "fine"
    except ServiceError as error:
        end = error.code
    except TimeoutError:
        end = "timed_out"
    assert time.monotonic() - began < LIMIT + SLACK
    return end


@pytest.mark.req("D-166")
@pytest.mark.parametrize("mode", MODES)
async def test_a_broken_database_costs_no_more_than_the_callers_limit_and_is_used_again(
    database: Database, proxy: TcpProxy, mode: Mode
) -> None:
    await asyncio.gather(*(database.ping() for _ in range(3)))
    async with proxy.broken(mode):
        ends = await asyncio.gather(*(limited(database.ping()) for _ in range(6)))
        ends.append(await limited(_in_transaction(database)))
    assert set(ends) <= {"unavailable", "timed_out"}
    await asyncio.gather(*(database.ping() for _ in range(6)))


async def _in_transaction(database: Database) -> None:
    async with database.transaction("acme") as connection:
        await connection.execute("SELECT 1")


async def test_without_a_limit_of_the_callers_a_hanging_database_is_given_up_after_its_own(
    proxy: TcpProxy, where: PostgresSettings
) -> None:
    async with Database.open(_through(proxy, where, command_timeout=0.5), "orchestrator") as database:
        await database.ping()
        async with proxy.broken("stall"):
            began = time.monotonic()
            with pytest.raises(Unavailable):
                await database.ping()
            assert time.monotonic() - began < 0.5 + SLACK


async def test_a_statement_whose_caller_gave_up_ends_on_the_server_and_its_connection_lives(database: Database) -> None:
    async with database.connection("acme") as connection:
        before = connection.get_server_pid()
    mark = uuid4().hex
    assert await limited(_slow(database, mark)) == "timed_out"
    async with database.connection("acme") as connection:
        assert connection.get_server_pid() == before
        running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE $1 AND state = 'active' AND pid <> pg_backend_pid()"
        assert await connection.fetchval(running, f"%{mark}%") == 0


async def _slow(database: Database, mark: str) -> None:
    async with database.connection("acme") as connection:
        await connection.execute(f"SELECT pg_sleep(30) /* {mark} */")


async def test_connections_that_the_server_ended_are_dropped_and_made_anew(
    database: Database, postgres: PostgresServer, where: PostgresSettings
) -> None:
    busy = asyncio.create_task(_slow(database, "busy"))
    async with database.connection("acme") as connection:
        idle = connection.get_server_pid()
    async with postgres.session(where) as admin:
        running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%busy%' AND pid <> pg_backend_pid()"
        async with asyncio.timeout(5):
            while not await admin.fetchval(running):
                pass
        ended = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'phronesis-orchestrator' "
            "AND datname = current_database()"
        )
        await admin.execute(ended)
    with pytest.raises(Unavailable):
        await busy
    await until_up(database.ping)
    async with database.connection("acme") as connection:
        assert connection.get_server_pid() != idle


async def until_up(ping: Callable[[], Awaitable[object]]) -> None:
    """Return as soon as a store answers."""
    end = time.monotonic() + 20
    while await limited(ping()) != "fine":
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


@pytest.mark.req("D-139")
async def test_a_database_with_no_place_left_is_unavailable(postgres: PostgresServer) -> None:
    role = f"guest_{uuid4().hex}"
    async with postgres.session(PostgresSettings(dsn=SecretStr(postgres.dsn))) as admin:
        await admin.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1")
        dsn = SecretStr(postgres.dsn.replace("postgres@", f"{role}@"))
        async with Database.open(PostgresSettings(dsn=dsn), "public") as crowded:
            async with crowded.connection("acme"):
                with pytest.raises(Unavailable):
                    await crowded.ping()
            await crowded.ping()
        await admin.execute(f"DROP ROLE {role}")


async def test_a_database_that_does_not_let_the_service_in_is_unavailable_and_logged_without_its_text(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    dsn = SecretStr(postgres.dsn.replace("postgres@", "nobody-there@"))
    async with Database.open(PostgresSettings(dsn=dsn), "public") as database:
        with pytest.raises(Unavailable) as raised:
            await database.ping()
    assert "nobody-there" not in raised.value.detail + caplog.text
    assert "does not let the service in: 28000" in caplog.text


async def test_the_server_itself_ends_what_a_vanished_client_left_behind(database: Database) -> None:
    names = ("statement_timeout", "idle_in_transaction_session_timeout", "tcp_keepalives_idle", "tcp_keepalives_count")
    async with database.connection("acme") as connection:
        found = [await connection.fetchval(f"SELECT reset_val FROM pg_settings WHERE name = '{name}'") for name in names]
    assert found == ["60000", "60000", "15", "3"]


@pytest.fixture
async def store(graph_server: GraphServer, tmp_path: Path) -> AsyncIterator[tuple[Bolt, TcpProxy]]:
    password = tmp_path / "password"
    password.write_text(graph_server.root.password)
    async with tcp_proxy(("127.0.0.1", graph_server.port)) as proxy:
        settings = GraphSettings(
            url=f"bolt://127.0.0.1:{proxy.port}",
            user=graph_server.root.user,
            password_file=password,
            database=graph_server.database,
            dialect=graph_server.dialect,
        )
        async with Bolt.open(settings) as opened:
            yield opened, proxy


@pytest.mark.req("D-138", "D-166")
@pytest.mark.parametrize("mode", [*MODES, "cut"])
async def test_a_broken_graph_store_costs_no_more_than_the_callers_limit_and_is_used_again(
    store: tuple[Bolt, TcpProxy], mode: Mode
) -> None:
    bolt, proxy = store

    async def ping() -> None:
        await bolt.read(lambda transaction: transaction.rows("RETURN 1 AS one"))

    await until_up(ping)  # the store's first answers take seconds
    async with proxy.broken(mode):
        ends = await asyncio.gather(*(limited(ping()) for _ in range(6)))
        ends.append(await limited(bolt.write(lambda transaction: transaction.rows("MERGE (n:Probe {id: 'p'}) RETURN n.id"))))
    assert set(ends) <= {"unavailable", "timed_out"}
    await until_up(ping)
    await asyncio.gather(*(ping() for _ in range(6)))


@pytest.mark.req("O-357")
async def test_with_the_graph_store_away_a_write_fails_at_once_may_be_repeated_and_is_not_announced(
    store: tuple[Bolt, TcpProxy], graph_server: GraphServer, nats_server: NatsServer
) -> None:
    bolt, proxy = store
    who, heard = somebody(**Persona.ADMIN.rights), list[str]()

    async def on_changed(news: News, event: ConstitutionChanged) -> None:
        if news.tenant == who.tenant:
            heard.extend(node.id for node in event.nodes)

    async with connected(nats_server, "graph", "gateway", "memory") as (graph, gateway, memory):
        await build_graph(graph, bolt, graph_server.dialect)
        await follow(memory, CONSTITUTION_CHANGED, on_changed)

        async def create(id: str) -> None:
            rpc = CREATE["goal"].rpc
            await ask(gateway, who, rpc, rpc.input.model_validate({"id": id, "title": f"The {id}", "requestId": id}))

        async def created(id: str) -> bool:
            with contextlib.suppress(Unavailable, TimedOut):
                await create(id)
                return True
            return False

        await eventually(lambda: created("before"), 120)  # the store's schema is declared first
        await eventually(lambda: heard == ["before"])
        async with proxy.broken("refuse"):
            began = time.monotonic()
            with pytest.raises(Unavailable) as away:
                await create("during")
            assert (away.value.status, time.monotonic() - began < 2 * SLACK) == (503, True)
        await eventually(lambda: created("after"))
        await eventually(lambda: heard[1:] == ["after"])
        await graph.stop()


@pytest.fixture
async def memory(postgres: PostgresServer, proxy: TcpProxy) -> AsyncIterator[tuple[ItemHandlers, ScriptedGraph]]:
    """The memory service's handlers on a database behind the proxy."""
    async with postgres.fresh_schema("memory") as where:
        async with Database.open(_through(proxy, where), "memory") as database:
            graph = ScriptedGraph()
            handlers, *_ = assemble(database, WordEmbedder(), graph, MemorySettings(stage_seconds=0.3), lambda: None)
            yield handlers, graph


@pytest.mark.req("D-137", "D-139", "D-166")
@pytest.mark.parametrize("mode", MODES)
async def test_while_the_database_is_broken_retrieval_hands_back_nothing_and_says_so_and_then_all_again(
    memory: tuple[ItemHandlers, ScriptedGraph], proxy: TcpProxy, mode: Mode
) -> None:
    handlers, _ = memory
    who = someone()
    await handlers.remember(calling(who, uuid4().hex), Remember(items=(RememberItem(title="Kvitfjell", text="It has snow."),)))

    async def retrieved() -> AugmentedMemoryContext:
        return await handlers.retrieve(calling(who), Retrieve(key_phrases=("Kvitfjell",)))

    async with proxy.broken(mode):
        began = time.monotonic()
        found = await retrieved()
        assert time.monotonic() - began < 0.3 + 2 * SLACK
    assert (found.degraded, found.memory_units, found.seeds) == (("vector", "text"), (), ())
    assert [item.title for item in (await retrieved()).memory_units] == ["Kvitfjell"]


@pytest.mark.req("D-137")
@pytest.mark.parametrize("mode", MODES)
async def test_an_embedding_service_that_is_broken_costs_no_more_than_the_time_at_hand(mode: Mode) -> None:
    async with tcp_proxy(("127.0.0.1", 1)) as proxy:
        await proxy.be(mode)
        token = envelope.deadline.set(time.time() + LIMIT)
        try:
            async with RemoteEmbedder.open(f"http://127.0.0.1:{proxy.port}", None, "m", 3, None) as embedder:
                began = time.monotonic()
                with pytest.raises(Unavailable):
                    await embedder.embed_queries(["x"])
                assert time.monotonic() - began < LIMIT + SLACK
        finally:
            envelope.deadline.reset(token)


@pytest.mark.parametrize("mode", MODES)
async def test_a_broken_object_store_is_unavailable_and_used_again(nats_server: NatsServer, mode: Mode) -> None:
    async with tcp_proxy(("127.0.0.1", nats_server.port)) as proxy:
        settings = nats_server.settings("gateway").model_copy(update={"url": f"nats://127.0.0.1:{proxy.port}"})
        async with connect("gateway", settings) as bus:
            bucket, name = Blobs(bus, UPLOADS), uuid4().hex
            await bucket.put(name, b"before")
            async with proxy.broken(mode):
                assert await limited(bucket.put(name, b"during")) in ("unavailable", "timed_out")
            await until_up(partial(bucket.put, name, b"after"))
            await bucket.delete(name)
            with pytest.raises(NotFound):
                await bucket.get(name)
