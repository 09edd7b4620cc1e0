"""The audit trail on a real Postgres: read by administrators of its tenant alone, filtered, searched, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_bus import Call, audit_entry
from phronesis_contracts import Forbidden, Principal
from phronesis_contracts.orchestrator import AuditPage, ListAudit
from phronesis_orchestrator.traces import store
from phronesis_orchestrator.traces.handlers import TraceHandlers
from phronesis_orchestrator.traces.store import PostgresTraces
from phronesis_postgres import Database
from tests.support.personas import Persona
from tests.support.servers import PostgresServer

ADMIN = Principal(tenant="acme", user="boss", **Persona.ADMIN.rights)
ANN = Principal(tenant="acme", user="ann")


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


@pytest.fixture
def traces(database: Database) -> PostgresTraces:
    return PostgresTraces(database)


async def enter(traces: PostgresTraces, *entries: tuple[Principal, str, dict[str, Any]], code: str | None = None) -> None:
    for number, (who, action, arguments) in enumerate(entries):
        entry = audit_entry(who, action, arguments, code=code)
        await traces.audit(f"{who.tenant} {action} {number} {code}", who.tenant, "gateway", entry)


async def read(traces: PostgresTraces, by: Principal = ADMIN, **wanted: Any) -> AuditPage:
    handlers = TraceHandlers(traces, *[None] * 3)  # type: ignore[arg-type]
    return await handlers.audit(Call(by, "gateway"), ListAudit(**wanted))


async def actions(traces: PostgresTraces, **wanted: Any) -> list[str]:
    return [entry.action for entry in (await read(traces, **wanted)).entries]


async def test_an_administrator_reads_what_was_done_in_the_tenant_and_nothing_of_another(traces: PostgresTraces) -> None:
    other = ADMIN.model_copy(update={"tenant": "other"})
    await enter(traces, (ADMIN, "keys.create", {"user": "bo"}), (other, "keys.create", {"user": "eve"}))
    page = await read(traces)
    assert page.next is None
    (entry,) = page.entries
    assert entry.model_dump(exclude={"id", "at"}) == {
        "service": "gateway",
        "who": "boss",
        "role": "admin",
        "acted_by": None,
        "action": "keys.create",
        "outcome": "done",
        "code": None,
        "arguments": {"user": "bo"},
    }


async def test_nobody_but_an_administrator_reads_the_trail(traces: PostgresTraces) -> None:
    with pytest.raises(Forbidden):
        await read(traces, ANN)


async def test_entries_are_filtered_by_user_action_outcome_and_time(traces: PostgresTraces) -> None:
    await enter(traces, (ADMIN, "keys.create", {}), (ANN, "memory.add", {}))
    await enter(traces, (ANN, "keys.list", {}), code="forbidden")
    assert await actions(traces, who="ann") == ["keys.list", "memory.add"]
    assert await actions(traces, action="keys.") == ["keys.list", "keys.create"]
    assert await actions(traces, outcome="refused") == ["keys.list"]
    newest = (await read(traces)).entries[0].at
    assert await actions(traces, until=newest) == ["memory.add", "keys.create"]
    assert await actions(traces, since=newest) == ["keys.list"]


async def test_a_text_is_found_in_any_part_of_an_entry_and_is_no_pattern(traces: PostgresTraces) -> None:
    await enter(traces, (ADMIN, "keys.create", {"user": "Ümit"}), (ADMIN, "limits.set", {"agent": "100%"}))
    assert await actions(traces, text="ümit") == ["keys.create"]
    assert await actions(traces, text="LIMITS") == ["limits.set"]
    assert await actions(traces, text="0%") == ["limits.set"]
    assert await actions(traces, text="_") == []


async def test_pages_follow_each_other_without_a_gap_or_a_repeat(traces: PostgresTraces) -> None:
    await enter(traces, *((ADMIN, f"a.{number}", {}) for number in range(5)))
    found, before = [], None
    while True:
        page = await read(traces, limit=2, before=before)
        found.append([entry.action for entry in page.entries])
        before = page.next
        if before is None:
            break
    assert found == [["a.4", "a.3"], ["a.2", "a.1"], ["a.0"]]


async def test_a_search_looks_through_a_bounded_number_of_entries_and_goes_on_behind_them(
    traces: PostgresTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "AUDIT_LOOKED", 2)
    await enter(traces, *((ADMIN, f"a.{number}", {"at": "home" if number == 0 else "work"}) for number in range(5)))
    found, before, pages = [], None, 0
    while True:
        page = await read(traces, text="home", before=before)
        found += [entry.action for entry in page.entries]
        before, pages = page.next, pages + 1
        if before is None:
            break
    assert (found, pages) == (["a.0"], 3)


async def test_a_page_of_large_entries_holds_fewer_of_them(traces: PostgresTraces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_AUDIT_CHARS", 100)
    await enter(traces, *((ADMIN, f"a.{number}", {"text": "x" * 80}) for number in range(3)))
    page = await read(traces)
    assert [entry.action for entry in page.entries] == ["a.2"]
    assert await actions(traces, before=page.next) == ["a.1"]
