"""Sessions, workloads and calendars on a real broker and a real Postgres; the owners that are asked answer from values."""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from pydantic import SecretStr

from phronesis_bus import Bus, Call, Relay, announce, ask, connect, serve
from phronesis_contracts import BadRequest, Forbidden, Nothing, Principal, ServiceError, Unavailable
from phronesis_contracts.constitution.lists import LIST_FOUNDATION_TOOL, LIST_VISION_TOOL
from phronesis_contracts.constitution.paths import DUE_WORK_TOOL
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.session import (
    ASSESS_WORKLOAD,
    CONTEXT_USAGE,
    GET_CALENDAR,
    SET_CALENDAR,
    START_SESSION,
    AskUsage,
    AssessWorkload,
    CalendarSet,
    SessionStarted,
    SetCalendar,
    StartSession,
)
from phronesis_contracts.constitution.values import READERS
from phronesis_contracts.constitution.writes import CONSTITUTION_CHANGED, ConstitutionChanged, LinkNews, NodeNews, Operation
from phronesis_contracts.media import READ_WEB, ReadWeb, WebRead
from phronesis_orchestrator.sessions.calendar import CalendarReaders
from phronesis_orchestrator.sessions.handlers import serve_sessions
from phronesis_orchestrator.sessions.store import AesSeal, PostgresCalendars
from phronesis_orchestrator.turns.ports import BusNeighbours
from phronesis_postgres import Database, PostgresOutbox
from tests.support.bus import eventually
from tests.support.personas import Persona
from tests.support.servers import NatsServer, PostgresServer
from tests.unit.orchestrator.sessions.fakes import DUE, FOUNDATION, VISION

DAILY = "\r\n".join(
    [
        *("BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:1", "SUMMARY:Stand-up"),
        *("DTSTART:20200106T090000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY", "END:VEVENT", "END:VCALENDAR", ""),
    ]
)
ALL = ("foundation", "vision", "workload")


@dataclass
class Platform:
    """The orchestrator's sessions, and the owners that they ask."""

    gateway: Bus
    graph: Bus
    orchestrator: Bus
    asked: Counter[str] = field(default_factory=Counter)
    answers: dict[str, Any] = field(default_factory=dict)
    pages: list[ReadWeb] = field(default_factory=list)

    async def owner(self, name: str, answer: Any) -> Any:
        """What an owner says: the answer, or what a test put in its place."""
        self.asked[name] += 1
        answer = self.answers.get(name, answer)
        if isinstance(answer, ServiceError):
            raise answer
        return answer

    async def start(self, who: Principal, **request: Any) -> SessionStarted:
        return await ask(self.gateway, who, START_SESSION, StartSession(**request))

    async def news(self, tenant: str, change: ConstitutionChanged) -> None:
        await announce(self.graph, tenant, CONSTITUTION_CHANGED, change)

    async def fresh(self, who: Principal) -> set[str]:
        """The parts that the next session loads anew."""
        return set(ALL) - set((await self.start(who)).stats.cached)


@asynccontextmanager
async def platform(nats: NatsServer, database: Database) -> AsyncIterator[Platform]:
    async with (
        connect("gateway", nats.settings("gateway")) as gateway,
        connect("graph", nats.settings("graph")) as graph,
        connect("media", nats.settings("media")) as media,
        connect("orchestrator", nats.settings("orchestrator")) as orchestrator,
    ):
        here = Platform(gateway, graph, orchestrator)

        async def foundation(call: Call, request: Any) -> Any:
            return await here.owner("foundation", FOUNDATION)

        async def vision(call: Call, request: Any) -> Any:
            return await here.owner("vision", VISION)

        async def due(call: Call, request: Any) -> Any:
            return await here.owner("workload", DUE)

        async def read(call: Call, request: ReadWeb) -> WebRead:
            here.pages.append(request)
            content = base64.b64encode(zlib.compress(DAILY.encode())).decode()
            return await here.owner("media", WebRead(status=200, url=request.url, content=content))

        await serve(graph, LIST_FOUNDATION_TOOL, foundation)
        await serve(graph, LIST_VISION_TOOL, vision)
        await serve(graph, DUE_WORK_TOOL, due)
        await serve(media, READ_WEB, read)
        reader = CalendarReaders(1, seconds=20)
        orchestrator.on_stop(reader.close)
        relay = Relay(orchestrator, PostgresOutbox(database))
        seal = AesSeal(SecretStr("a long enough key of somebody"))
        await serve_sessions(orchestrator, BusNeighbours(orchestrator), PostgresCalendars(database), seal, reader, relay.wake)
        relay.start()
        yield here


@pytest.fixture(scope="module")
async def here(nats_server: NatsServer, postgres: PostgresServer) -> AsyncIterator[Platform]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        async with platform(nats_server, database) as made:
            yield made


@pytest.fixture(autouse=True)
def _quiet(here: Platform) -> None:
    here.asked.clear()
    here.answers.clear()
    here.pages.clear()


def somebody(role: Persona = Persona.DISCUSS) -> Principal:
    return Principal(tenant=f"t-{uuid4().hex[:8]}", user="ann", **role.rights)


def wrote(type: str, layer: Layer, operation: Operation, *changed: str, id: str = "x") -> ConstitutionChanged:
    return ConstitutionChanged(
        nodes=(NodeNews(id=id, type=type, layer=layer, operation=operation, version=2, changed=changed),)
    )


def joined(type: str, source: Layer, target: Layer) -> ConstitutionChanged:
    layers = tuple(dict.fromkeys((source, target)))
    news = LinkNews(id="r", type=type, from_id="a", to_id="b", operation=Operation.CREATE, layers=layers)
    return ConstitutionChanged(relationships=(news,))


@pytest.mark.req("O-006", "O-007", "O-237", "O-242", "O-434", "O-435", "O-436")
async def test_a_session_begins_with_all_three_parts_in_little_time(here: Platform) -> None:
    who = somebody()
    found = await here.start(who, session_id="s1")
    assert (found.session_id, found.foundation, found.foundation_relationships, found.vision) == (
        *("s1", FOUNDATION.items, FOUNDATION.relationships, VISION.items),
    )
    assert found.workload is not None
    assert (found.workload.tasks.total, found.warnings) == (2, ())
    assert (found.stats.load_time < 5_000, found.stats.total_tokens <= 25_000) == (True, True)
    assert here.asked == Counter(foundation=1, vision=1, workload=1)


@pytest.mark.req("O-252")
@pytest.mark.parametrize("role", sorted(Persona))
async def test_every_reader_of_the_constitution_may_begin_a_session_and_nobody_else(here: Platform, role: Persona) -> None:
    if role.principal.acts_as(READERS):
        assert (await here.start(somebody(role))).warnings == ()
    else:
        with pytest.raises(Forbidden):
            await here.start(somebody(role))


@pytest.mark.req("O-323")
@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (wrote("value", Layer.FOUNDATION, Operation.CREATE), {"foundation"}),
        (wrote("value", Layer.FOUNDATION, Operation.UPDATE, "status", id="v1"), {"foundation", "vision"}),
        (wrote("goal", Layer.VISION, Operation.UPDATE, "title"), {"vision"}),
        (wrote("task", Layer.EXECUTION, Operation.CREATE), {"workload"}),
        (joined("ENFORCED_BY", Layer.FOUNDATION, Layer.FOUNDATION), {"foundation"}),
        (joined("SUPPORTED_BY", Layer.VISION, Layer.FOUNDATION), {"vision"}),
    ],
    ids=["a value", "a parent archived", "a goal", "a task", "within the foundation", "a goal's parent"],
)
async def test_news_of_a_write_drops_what_it_touches_whoever_wrote(
    here: Platform, change: ConstitutionChanged, parts: set[str]
) -> None:
    who = somebody()
    await here.start(who)
    assert await here.fresh(who) == set()
    await here.news(who.tenant, change)
    seen: set[str] = set()

    async def reloaded() -> bool:
        seen.update(await here.fresh(who))
        return seen >= parts

    await eventually(reloaded)
    assert (seen, await here.fresh(who)) == (parts, set())


async def test_a_write_that_touches_nothing_drops_nothing(here: Platform) -> None:
    who = somebody()
    await here.start(who)
    await here.news(who.tenant, wrote("insight", Layer.MIND, Operation.CREATE))
    await here.news(who.tenant, wrote("task", Layer.EXECUTION, Operation.CREATE))  # heard after the first
    await eventually(lambda: _has(here, who, "workload"))
    assert here.asked == Counter(foundation=1, vision=1, workload=2)


async def _has(here: Platform, who: Principal, part: str) -> bool:
    return part in await here.fresh(who)


@pytest.mark.req("O-323")
async def test_after_the_broker_was_away_every_part_is_loaded_anew(here: Platform) -> None:
    who = somebody()
    await here.start(who)
    here.orchestrator.reconnected()
    assert (await here.fresh(who), await here.fresh(who)) == (set(ALL), set())


@pytest.mark.req("O-250")
async def test_a_part_whose_owner_is_away_is_named_and_the_others_arrive(here: Platform) -> None:
    here.answers["vision"] = Unavailable("away")
    found = await here.start(somebody())
    assert (len(found.foundation), found.vision, found.workload is not None, found.warnings) == (
        *(2, (), True, ("vision: it could not be loaded (unavailable)",)),
    )


@pytest.mark.req("O-357")
async def test_with_the_graph_away_a_session_begins_with_what_is_kept_and_each_such_part_is_marked(here: Platform) -> None:
    who = somebody()
    before = await here.start(who)
    here.answers |= dict.fromkeys(ALL, Unavailable("the graph is away"))
    during = await here.start(who)
    assert (during.foundation, during.vision, during.workload) == (before.foundation, before.vision, before.workload)
    assert (before.stats.cached, during.stats.cached, during.warnings) == ((), ALL, ())
    assert here.asked == Counter(ALL)


@pytest.mark.req("O-010", "O-120")
async def test_the_window_s_use_is_that_of_the_session_and_nothing_is_loaded_for_it(here: Platform) -> None:
    who = somebody()
    started = await here.start(who, session_id="s1")
    found = await ask(here.gateway, who, CONTEXT_USAGE, AskUsage(session_id="s1"))
    used = {row.component: row.used for row in found.rows}
    assert (found.window, used["foundation"], used["vision"], used["workload"]) == (
        *(200_000, started.stats.foundation_tokens, started.stats.vision_tokens, started.stats.workload_tokens),
    )
    await ask(here.gateway, who, ASSESS_WORKLOAD, AssessWorkload(include_task_details=True))
    assert here.asked == Counter(foundation=1, vision=1, workload=2)


@pytest.mark.req("O-204", "O-349")
async def test_a_file_of_a_calendar_is_set_told_and_counted(here: Platform) -> None:
    who = somebody()
    told = await ask(here.gateway, who, SET_CALENDAR, SetCalendar(ics=DAILY, hours=(2.0,) * 7))
    assert told == CalendarSet(source="ics", url=None, hours=(2.0,) * 7, time_zone="UTC", events=7)
    found = await ask(here.gateway, who, ASSESS_WORKLOAD, AssessWorkload())
    assert (found.calendar.total, found.calendar.total_hours, found.capacity.available_hours) == (7, 7.0, 14.0)
    assert await ask(here.gateway, who, GET_CALENDAR, Nothing()) == told.model_copy(update={"events": None})
    assert await ask(here.gateway, somebody(), GET_CALENDAR, Nothing()) == CalendarSet(
        source="none", url=None, hours=(8.0, 8.0, 8.0, 8.0, 8.0, 0.0, 0.0), time_zone="UTC", events=None
    )


async def test_a_password_reaches_the_media_service_alone(here: Platform) -> None:
    who = somebody()
    request = SetCalendar(url="https://calendar.example/ann.ics", username="ann", password="open sesame")
    told = await ask(here.gateway, who, SET_CALENDAR, request)
    assert [page.authorization for page in here.pages] == ["Basic " + base64.b64encode(b"ann:open sesame").decode()]
    assert "sesame" not in f"{told!r}{await ask(here.gateway, who, GET_CALENDAR, Nothing())!r}"
    assert (await ask(here.gateway, who, ASSESS_WORKLOAD, AssessWorkload())).calendar.total == 7
    assert len(here.pages) == 2


@pytest.mark.req("O-358")
async def test_a_calendar_whose_address_is_away_leaves_the_tasks(here: Platform) -> None:
    who = somebody()
    await ask(here.gateway, who, SET_CALENDAR, SetCalendar(url="https://calendar.example/ann.ics"))
    here.answers["media"] = Unavailable("away")
    found = await ask(here.gateway, who, ASSESS_WORKLOAD, AssessWorkload())
    assert (found.degraded, found.capacity.scheduled_hours) == (("calendar",), 20.0)


async def test_what_is_no_calendar_is_refused_and_nothing_is_kept(here: Platform) -> None:
    who = somebody()
    with pytest.raises(BadRequest):
        await ask(here.gateway, who, SET_CALENDAR, SetCalendar(ics="/etc/hostname"))
    assert (await ask(here.gateway, who, GET_CALENDAR, Nothing())).source == "none"
