"""Which statements hybrid retrieval makes of its phrases, on real stores: how many, always the same ones, by index."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, TypeVar

import asyncpg
import pytest

from phronesis_contracts import Principal
from phronesis_contracts.memory import AugmentedMemoryContext, ItemKind, Remember, RememberItem, Retrieve
from phronesis_contracts.twin import Expand, Neighbour
from phronesis_graph.bolt.driver import Bolt, Row, Transaction
from phronesis_graph.links.items import ITEM_LABELS
from phronesis_graph.links.store import BoltLinkStore
from phronesis_graph.settings import Dialect
from phronesis_local.settings import Stores as Choice
from phronesis_memory.app import assemble
from phronesis_memory.items.handlers import ItemHandlers
from phronesis_memory.settings import MemorySettings
from phronesis_postgres import EVERY_TENANT, Connection, Database
from tests.support.bus import somebody
from tests.support.graph import Stores, opened, stored
from tests.support.memory import ScriptedGraph, WordEmbedder, calling, open_index, someone
from tests.support.production import STORES
from tests.support.servers import GraphServer, PostgresServer, VectorServer

T = TypeVar("T")
NAMES = ("Project Halcyon", "last week's talk", "that feeling of being stuck")
STEPS = {"search": " texts ", "walk": "a walk", "batch": "FROM items"}
"""Each step of a retrieval, and what stands in its statements."""
EVIL = "' }) DETACH DELETE n // '; DROP TABLE items; -- zzyzx"


class Watched(Database):
    """A database whose statements can be seen."""

    seen: list[str]

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[Connection]:
        """See `Database`."""
        async with super()._held() as connection:
            connection.add_query_logger(self._note)
            try:
                yield connection
            finally:
                connection.remove_query_logger(self._note)

    def _note(self, query: asyncpg.connection.LoggedQuery) -> None:
        self.seen.append(query.query)


@dataclass
class Graph(ScriptedGraph):
    """A graph that is told apart from the statements around it."""

    seen: list[str] = field(default_factory=list)

    async def expand(self, who: Principal, ids: Sequence[str], hops: int, limit: int) -> tuple[Neighbour, ...]:
        """See `ScriptedGraph`."""
        self.seen.append("a walk")
        return await super().expand(who, ids, hops, limit)


@dataclass
class Memory:
    """The service's handlers with what they stand on."""

    handlers: ItemHandlers
    database: Watched
    embedder: WordEmbedder
    graph: Graph

    async def retrieve(self, *phrases: str, who: Principal) -> tuple[AugmentedMemoryContext, list[str]]:
        """A retrieval, and its statements."""
        self.database.seen.clear()
        context = await self.handlers.retrieve(calling(who), Retrieve(key_phrases=phrases))
        await self.database.ping()  # what was seen is told in the loop's next round
        return context, [one for one in self.database.seen if one not in ("SELECT 1", "COMMIT") and not one.startswith("BEGIN")]


@pytest.fixture
async def memory(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Memory]:
    async with postgres.fresh_schema("memory") as where, Watched.open(where, "memory") as database:
        assert isinstance(database, Watched)
        database.seen = []
        embedder, graph = WordEmbedder(), Graph(seen=database.seen)
        settings = MemorySettings(stage_seconds=5, query_cache_seconds=0)
        # Another index is asked past the watched database: what it sweeps is no statement of a retrieval.
        async with Database.open(where, "memory") as unwatched, open_index(weaviate, unwatched, embedder) as index:
            handlers, _ = assemble(database, embedder, graph, settings, lambda: None, index)
            yield Memory(handlers, database, embedder, graph)


def _fact(text: str) -> RememberItem:
    return RememberItem(text=text)


@pytest.mark.req("D-158", "D-157", "D-067", "D-072", "D-093")
async def test_each_of_three_phrases_finds_its_own_by_one_walk_and_one_batch_for_each_type(memory: Memory) -> None:
    who = someone()
    concept = RememberItem(text="a feeling of being stuck", title="Stuck", kind=ItemKind.CONCEPT)
    stored = await memory.handlers.remember(
        calling(who, "k"), Remember(items=(_fact("Project Halcyon began"), _fact("the talk of last week"), concept))
    )
    context, statements = await memory.retrieve(*NAMES, who=who)
    assert sorted(memory.embedder.queries) == sorted(NAMES)
    steps = [step for one in statements for step, word in STEPS.items() if word in one]
    assert [step for step, _ in groupby(steps)] == ["search", "walk", "batch"]
    assert (steps.count("walk"), steps.count("batch")) == (1, 2)
    assert [set(asked) for asked in memory.graph.asked] == [{item.id for item in stored.items}]
    assert {seed.phrase: seed.id for seed in context.seeds} == dict(zip(NAMES, (item.id for item in stored.items), strict=True))


def _own(statements: list[str]) -> list[str]:
    """The service's own statements: a new connection asks for its role and its types first."""
    around = ("typeinfo", "current_setting", "rolbypassrls")
    return [one for one in statements if one != "a walk" and not any(word in one for word in around)]


@pytest.mark.req("D-072")
async def test_eight_phrases_take_as_many_statements_and_calls_of_the_model_as_one(memory: Memory) -> None:
    who = someone()
    await memory.handlers.remember(calling(who, "k"), Remember(items=tuple(_fact(f"an okapi {n}") for n in range(8))))
    await memory.retrieve("warm", who=who)  # the sizes of scopes are read, and known from here on
    memory.embedder.calls = 0
    _, alone = await memory.retrieve("okapi", who=who)
    together, statements = await memory.retrieve(*(f"okapi {n}" for n in range(8)), who=who)
    # vectors, words' weights, words, and the passages of what they found; then the items
    made = 3 if STORES is Choice.PRODUCTION else 5
    assert (len(_own(alone)), len(_own(statements))) == (made, made)
    assert memory.embedder.calls == 2
    assert len(together.seeds) == 8


@pytest.mark.req("D-068", "D-086", "D-163")
async def test_the_statements_of_a_search_are_the_same_whatever_the_phrase(memory: Memory) -> None:
    who, other = someone(), someone()
    for caller in (who, other):
        await memory.handlers.remember(calling(caller, "k"), Remember(items=(_fact("an okapi in a zzyzx"),)))
    _, plain = await memory.retrieve("okapi", who=who)
    found, evil = await memory.retrieve(f"okapi {EVIL}", who=other)
    assert len(found.seeds) == 1
    assert set(_own(plain)) == set(_own(evil))
    assert not [one for one in (*plain, *evil) if "okapi" in one or "zzyzx" in one or who.user in one]


@pytest.mark.req("D-073", "D-075")
async def test_what_is_searched_is_made_by_the_migrations_with_id_and_type_of_each_item(memory: Memory) -> None:
    """The class `UserKnowledgeItem`, as Postgres has it: tables that stand before the service has run."""
    async with memory.database.connection(EVERY_TENANT) as connection:
        rows = await connection.fetch("SELECT table_name, column_name FROM information_schema.columns")
    made: dict[str, set[str]] = {}
    for row in rows:
        made.setdefault(row["table_name"], set()).add(row["column_name"])
    assert made["items"] >= {"id", "tenant", "owner", "kind", "external_id", "title", "body"}
    assert made["vectors"] >= {"item_id", "tenant", "owner", "kind", "embedding"}
    who = someone()
    await memory.handlers.remember(calling(who, "k"), Remember(items=(_fact("an okapi"),)))
    _, statements = await memory.retrieve("okapi", who=who)
    read = {table for table in made for one in statements if re.search(rf"\b(FROM|JOIN) {table}\b", one)}
    assert read >= {"items", "texts", *([] if STORES is Choice.PRODUCTION else ["vectors"])}


class Noted(Transaction):
    """A transaction that remembers its statements with their parameters."""

    def __init__(self, inner: Transaction, seen: list[tuple[str, dict[str, object]]]) -> None:
        super().__init__(inner._inner)
        self._seen = seen

    async def rows(self, statement: str, **parameters: object) -> list[Row]:
        """See `Transaction`."""
        self._seen.append((statement, parameters))
        return await super().rows(statement, **parameters)


@dataclass
class NotedBolt:
    """A store whose read statements can be seen."""

    bolt: Bolt
    seen: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """See `Bolt`."""
        return await self.bolt.read(lambda transaction: work(Noted(transaction, self.seen)))


@pytest.fixture(scope="module")
async def stores(graph_server: GraphServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stores]:
    async with opened(graph_server, tmp_path_factory.mktemp("queries")) as found:
        yield found


async def _walked(stores: Stores, *ids: str) -> tuple[list[Neighbour], list[tuple[str, dict[str, object]]]]:
    """A walk from items that are linked in the order given, and its statements."""
    who, bolt = somebody(), NotedBolt(stores.bolt)
    links = tuple(f"{source}>{target}" for source, target in pairwise(ids))
    await stores.knowledge.store(who.tenant, stored(who.user, *ids, links=links))
    walk = BoltLinkStore(bolt, stores.schema)  # type: ignore[arg-type]  # a walk only reads
    return await walk.expand(who.tenant, who.user, Expand(ids=ids[:1], hops=2, limit=100)), bolt.seen


@pytest.mark.req("D-068", "D-086", "X-C05")
async def test_the_statements_of_a_walk_are_the_same_whatever_the_seeds(stores: Stores) -> None:
    found, plain = await _walked(stores, "a", "b", "d")
    odd, evil = await _walked(stores, EVIL, "b", "d")
    assert ([item.hop for item in found], [item.hop for item in odd]) == ([0, 1, 2], [0, 1, 2])
    assert [statement for statement, _ in plain] == [statement for statement, _ in evil]
    assert not [statement for statement, _ in evil if "zzyzx" in statement or "DETACH" in statement]
    assert EVIL in str(evil[0][1])


@pytest.mark.req("D-091")
async def test_a_walk_starts_at_unique_keys_of_named_labels_by_their_index(stores: Stores) -> None:
    _, seen = await _walked(stores, "a", "cb", "d")
    constraints = await stores.run("SHOW CONSTRAINTS")
    unique = {(row["labelsOrTypes"][0], row["properties"][0]) for row in constraints if row["type"] == "UNIQUENESS"}
    assert unique >= {(label, "key") for label in ITEM_LABELS}
    starts = [await _starts(stores, part, given) for statement, given in seen for part in statement.split(" UNION ALL ")]
    assert starts == [[f"{label} by {label}[key]"] for label in (*ITEM_LABELS, "MemoryUnit", "Concept")]


async def _starts(stores: Stores, statement: str, given: dict[str, object]) -> list[str]:
    """Where the plan of a statement, as it was run, looks nodes up: the label, and the index that it took."""

    async def work(transaction: Transaction) -> dict[str, Any]:
        summary = await (await transaction._inner.run(f"PROFILE {statement}", given)).consume()
        assert summary.profile is not None
        return dict(summary.profile)

    plan = await stores.bolt.read(work)
    if stores.dialect is Dialect.NEO4J:
        return list(_seeks(plan))
    lines = [line for line in plan["args"]["string-representation"].splitlines() if "MATCH NODE" in line]
    return [f"{line.split(':')[1].split(')')[0]} by {line.partition('[index: ')[2].split('] ')[0]}" for line in lines]


def _seeks(plan: dict[str, Any]) -> Iterator[str]:
    """The leaves of a Neo4j plan that read the store: seeks in a unique index, and anything that is none, by its name."""
    kind = plan["operatorType"].split("@")[0]
    if kind.startswith("NodeUniqueIndexSeek"):
        label, key = re.findall(r"UNIQUE \w+:(\w+)\((\w+)\)", plan["args"]["Details"])[0]
        yield f"{label} by {label}[{key}]"
    elif not plan.get("children") and kind not in ("Argument", "Unwind"):
        yield kind
    for part in plan.get("children", ()):
        yield from _seeks(part)
