"""Releases of the instructions and experiments on them, on a real Postgres."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from phronesis_bus import Call
from phronesis_contracts import Conflict, NotFound, Principal
from phronesis_contracts.experiments import Arm, RecordOutcome, StartExperiment
from phronesis_contracts.instructions import NewText, PublishInstructions, RollbackInstructions, Unpublishable
from phronesis_instructions.library.content import read_matrix
from phronesis_instructions.library.store import PostgresStore
from phronesis_instructions.library.texts import Library
from phronesis_instructions.releases.experiments import Sample
from phronesis_instructions.releases.store import PostgresExperiments, PostgresExposures, PostgresReleases
from phronesis_postgres import EVERY_TENANT, Database
from tests.support.personas import Persona
from tests.support.servers import PostgresServer

MATRIX = read_matrix()
TAGS = ("EntityProject", "EntityRisk", "CLOSE_GAPS", "step1_requirements", "step5_return")


@pytest.fixture(scope="module")
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("instructions") as settings, Database.open(settings, "instructions") as database:
        await PostgresStore(database).release(MATRIX)
        yield database


def editor(key: str | None = None) -> Call:
    """An editor of a tenant of its own."""
    return Call(Principal(tenant=f"t-{uuid4().hex[:12]}", user="eve", **Persona.EDITOR.rights), "gateway", key)


async def library(database: Database, call: Call) -> Library:
    store = PostgresStore(database)
    return Library(await store.platform(), await store.overlay(call.who.tenant))


async def fetched(database: Database, query: str, *arguments: object) -> list[dict[str, Any]]:
    async with database.connection(EVERY_TENANT) as connection:
        return [dict(row) for row in await connection.fetch(query, *arguments)]


def texts(mark: str, *tags: str) -> PublishInstructions:
    return PublishInstructions(texts=tuple(NewText(tag=tag, content=f"{mark} {tag}") for tag in tags or TAGS), note=mark)


@pytest.mark.req("N-155", "N-175", "N-233", "N-234", "N-235", "N-242", "T-004")
async def test_the_matrix_is_in_its_tables_and_releasing_it_again_changes_nothing(database: Database) -> None:
    query = (
        "SELECT category AS part, count(*) FROM instruction_bundles WHERE status = 'active' GROUP BY 1 "
        "UNION ALL SELECT tier::text, count(*) FROM instruction_elements WHERE status = 'active' GROUP BY 1"
    )
    counts = {row["part"]: row["count"] for row in await fetched(database, query)}
    assert counts == {"bootstrap": 1, "mode_preface": 4, "mode_strategy": 2, "mode_tactical": 2, "2": 10, "3": 64}
    assert await PostgresStore(database).release(MATRIX) is False
    assert {row["part"]: row["count"] for row in await fetched(database, query)} == counts
    assert await fetched(database, "SELECT tag FROM instruction_elements WHERE avg_tokens IS NULL OR avg_tokens = 0") == []


@pytest.mark.req("N-172", "N-173", "NC-055", "NC-079", "NC-089")
async def test_the_combined_view_gives_what_the_bundles_hold(database: Database) -> None:
    view = await fetched(database, "SELECT tag, content FROM tier2_combined ORDER BY tag")
    query = "SELECT tag, content FROM instruction_bundles WHERE tag ~ '^tier2_mode_.$' ORDER BY tag"
    assert view == await fetched(database, query)
    assert len(view) == 4


@pytest.mark.req("N-212", "N-231")
async def test_what_ships_replaces_what_it_was_and_retires_what_it_has_no_more(postgres: PostgresServer) -> None:
    async with postgres.fresh_schema("instructions") as settings, Database.open(settings, "instructions") as fresh:
        store = PostgresStore(fresh)
        await store.release(MATRIX)
        fewer = MATRIX.model_copy(update={"version": "4.0.1", "elements": MATRIX.elements[:-1], "tier1": "Anew."})
        assert await store.release(fewer) is True
        assert await store.release(MATRIX) is False  # an older one never takes a newer one back
        found = Library(await store.platform())
        assert found.release == "4.0.1"
        assert (found.text("tier1_bootstrap", {}) or found.all()["EntityRisk"]).content == "Anew."
        assert found.text(MATRIX.elements[-1].tag, {}) is None


async def test_a_publication_is_for_its_tenant_alone_and_a_repeat_of_it_is_the_same_one(database: Database) -> None:
    call, other = editor("k1"), editor()
    releases = PostgresReleases(database)
    done = await releases.publish(call, texts("ours", "EntityProject"))
    assert (done.number, done.release, [change.tag for change in done.changes]) == (1, "4.0.0+1", ["EntityProject"])
    assert await releases.publish(call, texts("ours", "EntityProject")) == done
    mine, theirs = await library(database, call), await library(database, other)
    assert [
        (one.text("EntityProject", {}) or one.all()["EntityRisk"]).content == "ours EntityProject" for one in (mine, theirs)
    ] == [
        True,
        False,
    ]
    assert (mine.all()["EntityProject"].version, mine.all()["EntityProject"].tokens > 0) == ("4.0.1", True)
    subjects = await fetched(database, "SELECT subject FROM outbox WHERE tenant = $1 ORDER BY id", call.who.tenant)
    assert [row["subject"].split(".v1.")[1] for row in subjects] == ["released", "audited"]


async def test_a_fault_leaves_everything_as_it_was(database: Database) -> None:
    call, releases = editor(), PostgresReleases(database)
    with pytest.raises(Unpublishable, match=r"EntityRisk: it is blank; tier2_mode_a: it is made of its parts"):
        await releases.publish(
            call,
            PublishInstructions(
                texts=(
                    NewText(tag="EntityProject", content="fine"),
                    NewText(tag="EntityRisk", content="  "),
                    NewText(tag="tier2_mode_a", content="all"),
                )
            ),
        )
    assert (await library(database, call)).overlay.number == 0
    assert await releases.releases(call.who.tenant) == ()


@pytest.mark.req("N-243")
async def test_a_release_is_taken_back_whole_and_the_platforms_own_texts_are_number_0(database: Database) -> None:
    call, releases = editor(), PostgresReleases(database)
    await releases.publish(call, texts("one"))
    await releases.publish(call, texts("two", "EntityRisk"))
    assert (await releases.rollback(call, RollbackInstructions())).number == 1
    found = (await library(database, call)).all()
    assert {tag: found[tag].content for tag in TAGS} == {tag: f"one {tag}" for tag in TAGS}
    done = await releases.rollback(call, RollbackInstructions(to=0))
    assert (done.release, (await library(database, call)).overlay.texts) == ("4.0.0", {})
    with pytest.raises(Conflict):
        await releases.rollback(call, RollbackInstructions(to=0))
    with pytest.raises(NotFound):
        await releases.rollback(call, RollbackInstructions(to=9))
    assert (await releases.rollback(call, RollbackInstructions(to=2))).release == "4.0.0+2"
    assert [(one.number, one.active, one.texts, one.note) for one in await releases.releases(call.who.tenant)] == [
        (2, True, len(TAGS), "two"),
        (1, False, len(TAGS), "one"),
    ]


async def test_no_reader_ever_sees_half_of_a_release(database: Database) -> None:
    call, releases, store = editor(), PostgresReleases(database), PostgresStore(database)
    seen: Counter[str] = Counter()
    ended = asyncio.Event()
    await releases.publish(call, texts("r0"))

    async def read() -> None:
        while not ended.is_set():
            overlay = await store.overlay(call.who.tenant)
            marks = {overlay.texts[tag].content.split()[0] for tag in TAGS}
            assert len(marks) == 1
            seen[marks.pop()] += 1

    async def write() -> None:
        for number in range(1, 11):
            await releases.publish(call, texts(f"r{number}"))
            await releases.rollback(call, RollbackInstructions())
            await releases.rollback(call, RollbackInstructions(to=number + 1))
        ended.set()

    await asyncio.gather(write(), *(read() for _ in range(3)))
    assert len(seen) > 3


async def test_publications_that_come_together_are_one_after_the_other(database: Database) -> None:
    call, releases = editor(), PostgresReleases(database)
    done = await asyncio.gather(*(releases.publish(call, texts(f"m{n}", TAGS[n])) for n in range(4)))
    assert sorted(one.number for one in done) == [1, 2, 3, 4]
    assert set((await library(database, call)).overlay.texts) == set(TAGS[:4])


def experiment(name: str = "tone", tag: str = "step5_return") -> StartExperiment:
    return StartExperiment(
        name=name, arms=(Arm(name="control", weight=1), Arm(name="short", weight=1, texts={tag: "Be short."}))
    )


def user(call: Call, name: str) -> Principal:
    return Principal(tenant=call.who.tenant, user=name)


async def test_a_user_stays_in_its_arm_for_every_copy_and_after_a_restart_and_is_told_of_once(database: Database) -> None:
    call = editor()
    await PostgresExperiments(database).start(call, experiment())
    running = (await library(database, call)).overlay.experiments
    copies = [PostgresExposures(database, lambda: None) for _ in range(3)]
    users = [user(call, f"u{n}") for n in range(20)]
    first = await asyncio.gather(*(copy.arms(who, running) for copy in copies for who in users))
    again = [await PostgresExposures(database, lambda: None).arms(who, running) for who in users]
    assert first[:20] == first[20:40] == first[40:] == again
    told = await fetched(database, "SELECT count(*) FROM outbox WHERE tenant = $1 AND subject LIKE '%exposed'", call.who.tenant)
    assert told == [{"count": 20}]
    (known,) = await PostgresExperiments(database).experiments(call.who.tenant)
    counts = Counter(arms["tone"] for arms in again)
    assert {arm.name: arm.users for arm in known.arms} == {name: counts[name] for name in ("control", "short")}
    assert abs(counts["control"] - 10) <= 5


async def test_a_stopped_experiment_puts_nobody_into_an_arm(database: Database) -> None:
    call, experiments = editor(), PostgresExperiments(database)
    await experiments.start(call, experiment())
    running = (await library(database, call)).overlay.experiments
    stopped = await experiments.stop(call, "tone")
    assert (stopped.status, stopped.stopped_at is not None) == ("stopped", True)
    assert await experiments.stop(call, "tone") == stopped
    assert await PostgresExposures(database, lambda: None).arms(user(call, "ann"), running) == {}
    assert (await library(database, call)).overlay.experiments == ()


async def test_two_running_experiments_never_tell_one_text_otherwise(database: Database) -> None:
    call, experiments = editor(), PostgresExperiments(database)
    await experiments.start(call, experiment())
    with pytest.raises(Conflict, match="step5_return"):
        await experiments.start(call, experiment("other"))
    with pytest.raises(Conflict, match="name"):
        await experiments.start(call, experiment("tone", "EntityRisk"))
    with pytest.raises(Unpublishable, match="no such active text"):
        await experiments.start(call, experiment("third", "Nothing"))
    with pytest.raises(Unpublishable, match="two arms have one name; no arm has a text of its own"):
        await experiments.start(call, StartExperiment(name="fourth", arms=(Arm(name="a", weight=1), Arm(name="a", weight=1))))
    await experiments.start(call, experiment("third", "EntityRisk"))
    assert [one.name for one in (await library(database, call)).overlay.experiments] == ["tone", "third"]


async def test_outcomes_count_for_the_users_arm_once_for_a_key_and_by_the_mean_of_the_user(database: Database) -> None:
    call, experiments = editor(), PostgresExperiments(database)
    await experiments.start(call, experiment())
    running = (await library(database, call)).overlay.experiments
    arms = await PostgresExposures(database, lambda: None).arms(user(call, "ann"), running)
    keyed = Call(call.who, "gateway", "outcome-1")
    for _ in range(2):
        recorded = await experiments.record(keyed, RecordOutcome(user="ann", metric="helpful", value=1))
        assert recorded.arms == arms
    await experiments.record(call, RecordOutcome(user="ann", metric="helpful", value=0))
    assert (await experiments.record(call, RecordOutcome(user="nobody", metric="helpful", value=1))).arms == {}
    assert await experiments.samples(call.who.tenant, "tone") == {"helpful": {arms["tone"]: Sample(1, 0.5, 0.25, False)}}


async def test_a_tenant_sees_nothing_of_anothers_experiment(database: Database) -> None:
    call, other, experiments = editor(), editor(), PostgresExperiments(database)
    await experiments.start(call, experiment())
    assert await experiments.experiments(other.who.tenant) == ()
    assert await experiments.samples(other.who.tenant, "tone") == {}
    with pytest.raises(NotFound):
        await experiments.stop(other, "tone")


async def test_nothing_of_an_experiment_names_a_user_who_was_erased_and_others_stay_in_their_arms(database: Database) -> None:
    call, other = editor(), editor()
    ann, bob = user(call, "ann"), user(call, "bob")
    exposures = PostgresExposures(database, lambda: None)
    for one in (call, other):
        await PostgresExperiments(database).start(one, experiment())
        running = (await library(database, one)).overlay.experiments
        for name in ("ann", "bob"):
            await exposures.arms(user(one, name), running)
            await PostgresExperiments(database).record(one, RecordOutcome(user=name, metric="helpful", value=1))
    held = {"outcomes": 1, "exposures": 1, "writes": 0}
    assert await exposures.held(ann) == held
    assert await exposures.erase(ann) == held
    assert [sum((await exposures.held(one)).values()) for one in (ann, bob, user(other, "ann"))] == [0, 2, 2]
    assert sum((await exposures.erase(ann)).values()) == 0
