"""Users' calendars on a real Postgres: one a user, of one tenant, with the password encrypted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_orchestrator.sessions.calendar import Calendar
from phronesis_orchestrator.sessions.store import AesSeal, PostgresCalendars
from phronesis_postgres import Database, PostgresSettings
from tests.support.servers import PostgresServer

SEAL = AesSeal(SecretStr("a long enough key of somebody"))


@pytest.fixture
async def where(postgres: PostgresServer) -> AsyncIterator[PostgresSettings]:
    async with postgres.fresh_schema("orchestrator") as settings:
        yield settings


@pytest.fixture
async def database(where: PostgresSettings) -> AsyncIterator[Database]:
    async with Database.open(where, "orchestrator") as opened:
        yield opened


@pytest.fixture
def store(database: Database) -> PostgresCalendars:
    return PostgresCalendars(database)


def somebody(tenant: str = "") -> Call:
    return Call(Principal(tenant=tenant or f"t-{uuid4().hex[:8]}", user=f"u-{uuid4().hex[:8]}"), "gateway")


def diary(who: Principal) -> Calendar:
    return Calendar(
        source="caldav",
        url="https://calendar.example/private-token/ann",
        username="ann",
        sealed=SEAL.shut("open sesame", who),
        hours=(4.0, 4.5, 0.0, 8.0, 8.0, 0.0, 0.0),
        time_zone="Europe/London",
    )


async def test_who_never_set_one_has_the_usual_hours(store: PostgresCalendars) -> None:
    assert await store.of(somebody().who) == Calendar()


async def test_a_calendar_comes_back_as_it_was_set(store: PostgresCalendars) -> None:
    call = somebody()
    kept = await store.keep(call, diary(call.who))
    assert await store.of(call.who) == kept == replace(diary(call.who), sealed=kept.sealed, version=1)
    assert kept.sealed is not None
    assert SEAL.open(kept.sealed, call.who) == "open sesame"


async def test_setting_it_anew_replaces_all_of_it_and_raises_its_version(store: PostgresCalendars) -> None:
    call = somebody()
    await store.keep(call, diary(call.who))
    await store.keep(call, Calendar(source="ics", ics="BEGIN:VCALENDAR"))
    assert await store.of(call.who) == Calendar(source="ics", ics="BEGIN:VCALENDAR", version=2)


async def test_a_calendar_is_its_user_s_alone(store: PostgresCalendars) -> None:
    ann = somebody()
    await store.keep(ann, diary(ann.who))
    for other in (
        Principal(tenant=ann.who.tenant, user="bob"),
        Principal(tenant="other", user=ann.who.user),
    ):
        assert await store.of(other) == Calendar()


async def test_the_database_shows_no_other_tenant_s_row_and_takes_none(store: PostgresCalendars, database: Database) -> None:
    ann = somebody()
    await store.keep(ann, diary(ann.who))
    async with database.connection("other") as connection:
        assert await connection.fetch("SELECT * FROM calendars") == []
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with database.transaction("other") as connection:
            await connection.execute(
                "INSERT INTO calendars (tenant, user_id, source, hours, time_zone) VALUES ($1, 'x', 'none', '{}', 'UTC')",
                ann.who.tenant,
            )


async def test_neither_the_row_nor_the_audit_trail_holds_the_password(
    store: PostgresCalendars, postgres: PostgresServer, where: PostgresSettings
) -> None:
    call = somebody()
    await store.keep(call, diary(call.who))
    async with postgres.session(where, "orchestrator") as owner:
        [row] = await owner.fetch("SELECT * FROM calendars")
        [news] = await owner.fetch("SELECT subject, body FROM outbox")
    assert "sesame" not in repr(dict(row))
    assert b"sesame" not in bytes(row["sealed"])
    body = bytes(news["body"]).decode()
    assert ("audited" in news["subject"], "calendar.example" in body, "private-token" in body) == (True, True, False)
