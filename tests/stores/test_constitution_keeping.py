"""Vectors made anew, graph and index made to agree, and backups that bring both stores back without the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from uuid import uuid4

import pytest

from phronesis_contracts import BadRequest, NotFound, TimedOut
from phronesis_contracts.constitution.maintenance import (
    AskEmbeddings,
    Backup,
    BackupDamaged,
    BackupDone,
    BackupOrRestore,
    EmbeddingsTold,
    Regenerate,
    Regenerated,
    WrongConfirmation,
)
from phronesis_contracts.constitution.registry import TYPES, Layer
from phronesis_contracts.constitution.values import ConstitutionLink
from phronesis_contracts.memory import EmbeddingMismatch
from phronesis_contracts.orchestrator import Audited
from phronesis_contracts.service import AUDITED
from phronesis_embedding.local import LocalEmbedder
from phronesis_memory.constitution import projection
from phronesis_memory.constitution.backups import MAX_BACKUPS
from phronesis_memory.constitution.handlers import assemble_constitution, warm_up
from phronesis_memory.constitution.ports import NodeFilter
from phronesis_memory.constitution.semantic import NoiseLevel
from phronesis_memory.indexes import make_pgvector_nodes
from phronesis_memory.rebuild import rebuild_nodes
from phronesis_memory.settings import MemorySettings
from phronesis_postgres import EVERY_TENANT
from phronesis_tokens import count
from tests.support.constitution_memory import Constitution, ObedientEmbedder, admin, open_constitution, unit
from tests.support.memory import calling
from tests.support.servers import PostgresServer, VectorServer

EVERY = NodeFilter(lifecycle=None)
WORDS = ("apple", "beech", "cedar", "damson", "elder", "fig", "gorse", "hazel", "iris", "juniper")


@pytest.fixture
async def held(postgres: PostgresServer, weaviate: VectorServer | None) -> AsyncIterator[Constitution]:
    async with open_constitution(postgres, weaviate) as one:
        yield one


@pytest.fixture
def tenant() -> str:
    return f"t{uuid4().hex[:12]}"


def grown(held: Constitution, tenant: str) -> None:
    """A graph with a node of every type, joined one to the next; memory has heard nothing of it."""
    for n, type in enumerate(TYPES):
        held.graph.put(tenant, type, type, f"{WORDS[n % 10]} {n}", description=f"what {type} says of {WORDS[n % 7]}")
    names = list(TYPES)
    for n, (one, other) in enumerate(pairwise(names)):
        held.graph.links[tenant, f"l{n}"] = ConstitutionLink(id=f"l{n}", type="LEADS_TO", from_id=one, to_id=other)


async def regenerated(held: Constitution, tenant: str, **order: object) -> Regenerated:
    async with held.running():
        return await held.parts.handlers.regenerate(calling(admin(tenant)), Regenerate.model_validate(order))


async def told(held: Constitution, tenant: str, **asked: object) -> EmbeddingsTold:
    return await held.parts.handlers.embeddings(calling(admin(tenant)), AskEmbeddings.model_validate(asked))


async def order(held: Constitution, tenant: str, operation: str, **more: str) -> BackupDone:
    asked = BackupOrRestore.model_validate({"operation": operation, **more})
    return await held.parts.handlers.backup_restore(calling(admin(tenant)), asked)


async def found(held: Constitution, tenant: str, words: str) -> list[tuple[str, float]]:
    [vector] = await held.embedder.embed_queries([words])
    return [(hit.id, round(hit.cosine, 4)) for hit in await held.parts.vectors.nearest(tenant, vector, EVERY, 10)]


@pytest.mark.req("O-321", "O-367", "O-369", "O-370", "O-448", "O-419", "C-73")
async def test_every_node_of_a_graph_without_vectors_gets_one_and_a_second_time_changes_nothing(
    held: Constitution, tenant: str
) -> None:
    grown(held, tenant)
    embeddable = [name for name, kind in TYPES.items() if kind.tier is not None]
    assert await regenerated(held, tenant) == Regenerated(embedded=len(embeddable), unchanged=0, skipped=0, failed=0, removed=0)
    status = await told(held, tenant, ids=sorted(TYPES))
    assert {one.type: (one.states, one.dimensions, one.tier) for one in status.counts} == {
        name: ({"current": 1}, {"384": 1}, f"P{int(TYPES[name].tier or 0)}") for name in embeddable
    }
    assert [one.node_id for one in status.records] == sorted(embeddable)
    assert [(scope.name, scope.state, scope.similarity, scope.dimension) for scope in status.scopes] == [
        (f"{layer}_embeddings", "ONLINE", "cosine", 384) for layer in Layer
    ]
    assert (status.backlog, status.findings, status.tokens > 0) == (0, (), True)
    held.clock.forward(minutes=1)
    calls = held.embedder.calls
    again = await regenerated(held, tenant)
    assert (again.embedded, again.unchanged, held.embedder.calls) == (0, len(embeddable), calls)


@pytest.mark.req("O-313", "O-321")
async def test_what_is_forced_is_embedded_again_and_only_that(held: Constitution, tenant: str) -> None:
    grown(held, tenant)
    await regenerated(held, tenant)
    held.clock.forward(minutes=1)
    texts = len(held.embedder.texts)
    done = await regenerated(held, tenant, ids=("goal", "note"), force=True)
    assert (done.embedded, done.unchanged, len(held.embedder.texts) - texts) == (2, 0, 2)
    held.clock.forward(minutes=1)
    done = await regenerated(held, tenant, layers=("vision",), force=True)
    assert (done.embedded, len(held.embedder.texts) - texts) == (4, 6)


@pytest.mark.req("O-362")
async def test_graph_and_index_are_made_to_agree(held: Constitution, tenant: str) -> None:
    grown(held, tenant)
    await regenerated(held, tenant)
    async with held.database.transaction(tenant) as connection:
        await connection.execute("DELETE FROM constitution_vectors WHERE tenant = $1 AND node_id = 'goal'", tenant)
    held.graph.drop(tenant, "value")
    assert (await told(held, tenant)).findings == ("1 nodes of type goal have no vector",)
    held.clock.forward(minutes=1)
    done = await regenerated(held, tenant)
    assert (done.embedded, done.removed) == (1, 1)
    status = await told(held, tenant, ids=("goal", "value"))
    assert ([one.node_id for one in status.records], status.findings) == (["goal"], ())
    assert (await found(held, tenant, "goal 9"))[0][0] == "goal"


async def test_a_node_that_is_written_while_the_graph_is_walked_stays(held: Constitution, tenant: str) -> None:
    grown(held, tenant)
    await regenerated(held, tenant)
    walk = held.graph.walk

    async def written_meanwhile(tenant: str, after: str, limit: int) -> object:
        page = await walk(tenant, after, limit)
        if page and not after:
            await held.parts.following.follow(tenant, held.graph.put(tenant, "goal", "a-new-one", "quince"))
        return page

    held.graph.walk = written_meanwhile  # type: ignore[method-assign,assignment]
    done = await regenerated(held, tenant)
    assert (done.removed, len((await told(held, tenant, ids=("a-new-one",))).records)) == (0, 1)


async def test_an_order_that_takes_too_long_says_so(held: Constitution, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "_LONGEST", 0.2)
    grown(held, tenant)
    with pytest.raises(TimedOut):
        await held.parts.regenerating.regenerate(tenant, Regenerate())


@pytest.mark.req("O-454")
async def test_a_spot_check_finds_each_node_by_its_own_vector(held: Constitution, tenant: str) -> None:
    grown(held, tenant)
    await regenerated(held, tenant)
    checks = (await told(held, tenant, spot_check=10)).spot_checks
    assert len({check.node_id for check in checks}) == 10
    assert {(check.dimension, round(check.norm, 2), check.rank) for check in checks} == {(384, 1.0, 1)}


@pytest.mark.req("O-368")
async def test_missing_vectors_and_those_of_another_size_are_found_before_anyone_relies_on_them(
    held: Constitution, tenant: str
) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "apple"))
    await held.parts.following.follow(tenant, held.graph.put(tenant, "task", "b", "beech"))
    async with held.database.transaction(tenant) as connection:
        await connection.execute(
            "UPDATE constitution_vectors SET dimension = 3, embedding = '[1,2,3]' WHERE tenant = $1", tenant
        )
    assert (await told(held, tenant)).findings == (
        "1 vectors of type goal do not have 384 numbers",
        "1 nodes of type task have no vector",
    )


@pytest.mark.req("O-304", "O-303", "O-370", "X-C07")
async def test_another_model_is_refused_until_the_vectors_are_made_anew(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "apple"))
    large = ObedientEmbedder(1_536, "large")
    other = assemble_constitution(held.database, large, held.graph, held.bucket, MemorySettings(), None, held.clock)
    with pytest.raises(EmbeddingMismatch, match=r"are of words \(384 numbers\), and this service is set to large \(1536\)"):
        await other.vectors.nearest(tenant, unit(1_536, p0=1.0), NodeFilter(), 5)
    await other.following.follow(tenant, held.graph.put(tenant, "goal", "a", "beech"))
    await other.embedding.step()
    [record] = (await told(held, tenant, ids=("a",))).records
    assert (record.state, record.problem, record.dimension) == ("failed", "memory.embedding_mismatch", 384)


@pytest.mark.req("O-303", "O-321", "O-367", "O-401")
async def test_a_rebuild_makes_every_vector_anew_with_the_model_that_there_is_now(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "apple"), held.graph.put(tenant, "task", "b", "beech"))
    large = ObedientEmbedder(1_536, "large")
    rows = make_pgvector_nodes(held.database, large.model, large.dimension, MemorySettings())
    async with held.database.transaction(EVERY_TENANT) as connection:  # as the rebuild of items does before
        await connection.execute("DELETE FROM embedding")
    said: list[tuple[str, int, int]] = []
    assert await rebuild_nodes(held.database, rows, large, lambda *told: said.append(told)) == 2
    assert (said[0], said[-1]) == (("nodes", 0, 2), ("nodes", 2, 2))
    [vector] = await large.embed_queries(["goal apple"])
    assert [hit.id for hit in await rows.nearest(tenant, vector, EVERY, 1)] == ["a"]
    assert [one.dimensions for one in (await told(held, tenant)).counts] == [{"1536": 1}, {"1536": 1}]


@pytest.mark.req("O-121", "O-122", "O-400", "C-29")
async def test_what_was_deleted_and_changed_is_there_again_after_a_restore_without_the_model(
    held: Constitution, tenant: str
) -> None:
    grown(held, tenant)
    await regenerated(held, tenant)
    nodes, links, calls = dict(held.graph.nodes), dict(held.graph.links), held.embedder.calls
    before = await found(held, tenant, "goal apple beech")
    [made] = (await order(held, tenant, "backup")).backups
    embeddable = sum(kind.tier is not None for kind in TYPES.values())
    assert (made.nodes, made.relationships, made.embeddings) == (len(TYPES), len(TYPES) - 1, embeddable)
    await held.hear(tenant, held.graph.drop(tenant, "goal"), held.graph.put(tenant, "value", "extra", "added"))
    changed = held.embedder.calls
    assert changed == calls + 1
    verified = await order(held, tenant, "verify", backupId=made.id)
    assert verified.backups == (made,)
    done = await order(held, tenant, "restore", backupId=made.id, confirmation=verified.confirmation or "")
    assert (done.restored_nodes, done.restored_relationships, done.restored_embeddings, done.removed_nodes) == (
        len(TYPES),
        len(TYPES) - 1,
        embeddable,
        1,
    )
    assert (held.graph.nodes, held.graph.links) == (nodes, links)
    await held.embed()
    assert held.embedder.calls == changed
    assert await found(held, tenant, "goal apple beech") == before
    status = await told(held, tenant, ids=("extra",))
    assert (status.records, status.findings, sum(sum(one.states.values()) for one in status.counts)) == ((), (), embeddable)


@pytest.mark.req("O-402")
async def test_a_text_that_changed_after_the_backup_is_what_it_was_with_its_vector(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "apple"), held.graph.put(tenant, "goal", "b", "beech"))
    [made] = (await order(held, tenant, "backup")).backups
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "cedar"))
    calls = held.embedder.calls
    word = (await order(held, tenant, "verify", backupId=made.id)).confirmation or ""
    await order(held, tenant, "restore", backupId=made.id, confirmation=word)
    await held.embed()
    assert (held.embedder.calls, (await found(held, tenant, "apple"))[0]) == (calls, ("a", 1.0))
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "damson"))
    assert (await found(held, tenant, "damson"))[0] == ("a", 1.0)


@pytest.mark.req("O-121", "C-29")
async def test_a_restore_wants_the_word_for_that_very_backup(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "apple"))
    [made] = (await order(held, tenant, "backup")).backups
    with pytest.raises(WrongConfirmation):
        await order(held, tenant, "restore", backupId=made.id)
    with pytest.raises(WrongConfirmation):
        await order(held, tenant, "restore", backupId=made.id, confirmation="restore-0")
    with pytest.raises(NotFound):
        await order(held, f"{tenant}x", "verify", backupId=made.id)
    for name in ("", f"../{tenant}/{made.id}"):
        with pytest.raises(BadRequest):
            await order(held, tenant, "verify", backupId=name)


@pytest.mark.req("O-402")
async def test_a_backup_that_is_damaged_is_not_restored_from(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "apple"))
    [made] = (await order(held, tenant, "backup")).backups
    word = (await order(held, tenant, "verify", backupId=made.id)).confirmation or ""
    [part] = [name for name in held.bucket.held if not name.endswith("manifest")]
    held.bucket.held[part] = held.bucket.held[part][:-1]
    for operation in ("verify", "restore"):
        with pytest.raises(BackupDamaged):
            await order(held, tenant, operation, backupId=made.id, confirmation=word)
    assert (tenant, "a") in held.graph.nodes


@pytest.mark.req("O-347")
async def test_backups_restores_and_new_vectors_are_entered_in_the_audit_trail(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "apple"))
    [made] = (await order(held, tenant, "backup")).backups
    word = (await order(held, tenant, "verify", backupId=made.id)).confirmation or ""
    await order(held, tenant, "restore", backupId=made.id, confirmation=word)
    await regenerated(held, tenant, force=True)
    async with held.database.connection(tenant) as connection:
        rows = await connection.fetch("SELECT body FROM outbox WHERE subject = $1 ORDER BY id", AUDITED["memory"].on(tenant))
    entries = [Audited.model_validate_json(row["body"]) for row in rows]
    assert [(one.action, one.arguments.get("operation"), one.arguments.get("force")) for one in entries] == [
        ("backup.restore.v1", "backup", None),
        ("backup.restore.v1", "restore", None),
        ("embeddings.regenerate.v1", None, True),
    ]


async def test_so_many_backups_are_kept_and_the_oldest_goes(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "apple"))
    made: list[Backup] = []
    for _ in range(MAX_BACKUPS + 2):
        held.clock.forward(minutes=1)
        made += (await order(held, tenant, "backup")).backups
    assert list((await order(held, tenant, "list")).backups) == made[:1:-1]
    assert len(held.bucket.held) == 2 * MAX_BACKUPS
    assert (await order(held, f"{tenant}x", "list")).backups == ()


@pytest.mark.req("O-307", "C-79")
async def test_the_tokens_that_are_told_are_those_of_the_texts(held: Constitution, tenant: str) -> None:
    grown(held, tenant)
    await regenerated(held, tenant)
    status = await told(held, tenant)
    assert status.tokens == sum(count(text) for text in held.embedder.texts)
    # What a model of 0.13 dollars for a million tokens would have cost.
    assert status.tokens * 0.13 / 1_000_000 < 0.001


@pytest.mark.req("O-305", "O-371")
async def test_with_the_local_model_a_node_is_found_by_what_it_means(held: Constitution, tenant: str) -> None:
    async with LocalEmbedder.open(1) as model:
        parts = assemble_constitution(held.database, model, held.graph, held.bucket, MemorySettings(), None, held.clock)
        for news in (
            held.graph.put(tenant, "principle", "honesty", "Tell people the truth, also where it hurts"),
            held.graph.put(tenant, "goal", "garden", "Grow vegetables for the neighbourhood"),
            held.graph.put(tenant, "decision", "loan", "We borrow no money for machines"),
        ):
            await parts.following.follow(tenant, news)
        assert await parts.embedding.step() == 3
        for question, expected in (("never lie to anybody", "honesty"), ("a debt to buy equipment", "loan")):
            [vector] = await model.embed_queries([question])
            [best] = await parts.vectors.nearest(tenant, vector, NodeFilter(), 1)
            assert (best.id, best.cosine > 0.3) == (expected, True)


async def test_vectors_are_read_into_memory_before_the_first_question(held: Constitution, tenant: str) -> None:
    rows = make_pgvector_nodes(held.database, "words", 384, MemorySettings())
    await warm_up(rows, NoiseLevel(held.embedder))
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "apple"))
    await warm_up(rows, NoiseLevel(held.embedder))
    assert (await found(held, tenant, "goal apple"))[0][0] == "a"


@pytest.mark.req("O-339")
async def test_reads_do_not_wait_for_a_slow_embedder(held: Constitution, tenant: str) -> None:
    await held.hear(tenant, held.graph.put(tenant, "goal", "a", "apple"))
    slow = asyncio.Event()
    embed = held.embedder.embed_texts

    async def stuck(texts: list[str]) -> object:
        await slow.wait()
        return await embed(texts)

    held.embedder.embed_texts = stuck  # type: ignore[method-assign,assignment]
    async with held.running():
        for n in range(100):
            await held.parts.following.follow(tenant, held.graph.put(tenant, "goal", f"g{n}", f"beech {n}"))
        async with asyncio.timeout(2):
            assert (await found(held, tenant, "goal apple"))[0][0] == "a"
            assert (await told(held, tenant)).backlog == 100
        slow.set()
