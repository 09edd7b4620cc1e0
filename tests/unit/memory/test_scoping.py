"""Memories by scope over rooms in memory: who sees what, whatever the roles, departments and ministries are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from phronesis_bus import Call
from phronesis_contracts import BadRequest, Forbidden, Principal, Unavailable
from phronesis_contracts.memory import (
    FORGET_MEMORY_TOOL,
    KEEP_MEMORY_TOOL,
    RECALL_MEMORY_TOOL,
    ForgetMemory,
    ForgottenMemory,
    KeepMemory,
    KeptMemory,
    RecalledMemories,
    RecallMemory,
    Scope,
    Snippet,
)
from phronesis_memory.embedding.queries import QueryVectors
from phronesis_memory.items.drafts import Drafter
from phronesis_memory.items.scopes import ScopeHandlers
from phronesis_memory.values import Draft, Vector
from tests.support.cases import for_each
from tests.support.logs import logged
from tests.support.memory import WordEmbedder, calling
from tests.support.personas import Persona, persona_of

KEEPERS = (Persona.MAESTRO, Persona.ADMIN)


@dataclass
class Rooms:
    """Rooms that hold contents by key."""

    kept: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    down: bool = False
    slow: bool = False

    async def near(self, tenant: str, room: str, vector: Vector, limit: int) -> tuple[Snippet, ...]:
        """All that there is."""
        self.asked.append(room)
        if self.down:
            raise Unavailable("down")
        if self.slow:
            await asyncio.Event().wait()
        held = self.kept.get((tenant, room), {})
        return tuple(Snippet(key=key, content=text, confidence=1, score=0.5) for key, text in held.items())[:limit]

    async def keep(self, call: Call, request: KeepMemory, room: str, draft: Draft) -> KeptMemory:
        """Keep one."""
        held = self.kept.setdefault((call.who.tenant, room), {})
        status = "updated" if request.key in held else "created"
        held[request.key] = draft.text
        return KeptMemory.model_validate({"id": request.key, "status": status})

    async def forget(self, call: Call, request: ForgetMemory, room: str) -> ForgottenMemory:
        """Remove one."""
        held = self.kept.get((call.who.tenant, room), {})
        return ForgottenMemory(id=request.key if held.pop(request.key, None) is not None else None)


def scoping(rooms: Rooms, embedder: WordEmbedder | None = None) -> ScopeHandlers:
    model = embedder or WordEmbedder()
    return ScopeHandlers(rooms, QueryVectors(model, 60, 10), Drafter(model), seconds=0.2)


def asked(scope: str, limit: int = 50) -> RecallMemory:
    return RecallMemory(scope=scope, query_summary="okapi", limit=limit)


class Alike(WordEmbedder):
    """A model to which all texts are the same: what is near is not the question here."""

    def _vector(self, text: str) -> Vector:
        return np.ones(self.dimension, np.float32)


NAMES = st.sampled_from(["a", "b", "A", "a ", "ministry:a", "", None])


def _people(roles: Sequence[Persona]) -> st.SearchStrategy[Principal]:
    def made(role: Persona, **more: Any) -> Principal:
        return Principal(**role.rights, **more)

    return st.builds(
        made,
        role=st.sampled_from(roles),
        tenant=st.sampled_from(["acme", "other"]),
        user=st.sampled_from(["a", "b"]),
        department=NAMES,
        ministry=NAMES,
    )


PEOPLE, KEEPER = _people(list(Persona)), _people(KEEPERS)


def seen(reader: Principal, scope: str, kept: list[tuple[Principal, Scope, str]]) -> set[str] | type[Exception]:
    """The oracle: what the lists say, written down without rooms. The refusal, or the contents."""
    barred = {"noor": ("csuite", "secrets"), "maestro": (), "admin": ()}.get(persona_of(reader))
    if barred is None or scope in barred:
        return Forbidden

    def of(wanted: str) -> set[str]:
        found = set()
        for keeper, where, content in kept:
            if keeper.tenant != reader.tenant or where.value != wanted:
                continue
            if wanted == "personal" and keeper.user != reader.user:
                continue
            if wanted == "departmental" and (not reader.department or keeper.department != reader.department):
                continue
            if wanted == "ministry" and (not reader.ministry or keeper.ministry != reader.ministry):
                continue
            found.add(content)
        return found

    return of(scope) or (of("global") if scope == "departmental" else set())


async def told(handlers: ScopeHandlers, reader: Principal, scope: str) -> set[str] | type[Exception]:
    try:
        found = await handlers.recall_memory(calling(reader), asked(scope))
    except Forbidden:
        return Forbidden
    return {snippet.content for snippet in found.snippets}


async def _agree(writes: list[tuple[Principal, Scope]], readers: list[Principal]) -> None:
    handlers, kept = scoping(Rooms(), Alike()), list[tuple[Principal, Scope, str]]()
    for number, (who, scope) in enumerate(writes):
        request = KeepMemory(scope=scope, key=str(number), content=f"okapi {number}")
        homeless = {Scope.DEPARTMENTAL: not who.department, Scope.MINISTRY: not who.ministry}.get(scope, False)
        try:
            await handlers.keep_memory(calling(who), request)
        except BadRequest:
            assert homeless
        else:
            assert not homeless
            kept.append((who, scope, request.content))
    for reader in readers:
        for scope in Scope:
            assert await told(handlers, reader, scope) == seen(reader, scope, kept), (reader, scope)


@pytest.mark.req("N-084", "N-092", "N-093", "N-097", "N-098", "N-222", "N-223", "N-225", "NC-037", "NC-043", "T-002")
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(KEEPER, st.sampled_from(Scope)), max_size=8), st.lists(PEOPLE, min_size=1, max_size=4))
def test_everybody_sees_what_the_lists_say(writes: list[tuple[Principal, Scope]], readers: list[Principal]) -> None:
    asyncio.run(_agree(writes, readers))


@pytest.mark.req("N-221", "NC-092")
async def test_a_caller_without_a_role_has_the_limits_of_noor() -> None:
    with pytest.raises(Forbidden):
        await scoping(Rooms()).recall_memory(calling(Principal(tenant="acme", user="ann")), asked("secrets"))


@pytest.mark.req("N-088")
@pytest.mark.parametrize("user", [None, ""])
def test_nobody_asks_without_being_a_user(user: str | None) -> None:
    with pytest.raises(ValueError, match="user"):
        Principal.model_validate({"tenant": "acme", "user": user})


@pytest.mark.req("N-097", "N-098")
async def test_the_tenants_memories_are_asked_for_only_where_a_department_has_none() -> None:
    rooms = Rooms()
    handlers = scoping(rooms)
    who = Principal(tenant="acme", user="ann", **Persona.MAESTRO.rights, department="a", ministry="m")
    for scope in Scope:
        await handlers.recall_memory(calling(who), asked(scope))
    assert rooms.asked == [
        "scope:personal:ann", "scope:departmental:a", "scope:global", "scope:ministry:m", "scope:global", "scope:csuite",
        "scope:secrets",
    ]  # fmt: skip
    rooms.asked.clear()
    await handlers.keep_memory(calling(who), KeepMemory(scope=Scope.DEPARTMENTAL, key="k", content="okapi"))
    await handlers.recall_memory(calling(who), asked("departmental"))
    assert rooms.asked == ["scope:departmental:a"]


@pytest.mark.req("N-100", "NC-041", "NC-042")
@pytest.mark.parametrize("how", ["down", "slow"])
async def test_a_store_that_fails_or_takes_too_long_leaves_an_empty_answer_that_says_so(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    rooms = Rooms(down=how == "down", slow=how == "slow")
    found = await scoping(rooms).recall_memory(calling(Principal(tenant="acme", user="ann")), asked("personal"))
    assert found == RecalledMemories(snippets=(), scope=Scope.PERSONAL, degraded=("memory",))
    assert [record.levelno for record in logged(caplog, "memory")] == [logging.ERROR]


@pytest.mark.req("N-089")
async def test_the_role_is_looked_at_before_anything_else() -> None:
    rooms, embedder = Rooms(down=True), WordEmbedder()
    embedder.down = True
    handlers = scoping(rooms, embedder)
    noor = calling(Principal(tenant="acme", user="ann"))
    for scope, refusal in (("secrets", Forbidden), ("admin", BadRequest)):
        with pytest.raises(refusal):
            await handlers.recall_memory(noor, asked(scope))
    assert (rooms.asked, embedder.calls) == ([], 0)
    assert (await handlers.recall_memory(noor, asked("personal"))).degraded == ("vector",)


@pytest.mark.req("N-079", "N-080", "N-081", "N-082", "N-105")
@for_each(
    "given",
    [
        {},
        {"scope": "personal"},
        {"query_summary": "x"},
        {"scope": "personal", "query_summary": ""},
        {"scope": "personal", "query_summary": 5},
        {"scope": None, "query_summary": "x"},
        *({"scope": "personal", "query_summary": "x", "limit": limit} for limit in (0, -1, 51, 1000, "5", 2.5, True)),
        *({"scope": "personal", "query_summary": "x", name: "ann"} for name in ("user_id", "user", "tenant", "role")),
    ],
)
def test_a_question_that_does_not_fit_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RecallMemory.model_validate(given)


@pytest.mark.req("N-078", "N-079", "N-081", "N-083", "NC-034", "NC-094")
def test_a_model_is_offered_the_scopes_of_its_role() -> None:
    offered = {
        role: RECALL_MEMORY_TOOL.function(Principal(tenant="t", user="u", **role.rights))["parameters"]["properties"]["scope"][
            "enum"
        ]
        for role in KEEPERS
    }
    assert offered == {role: [str(scope) for scope in Scope] for role in KEEPERS}
    function = RECALL_MEMORY_TOOL.function()
    assert (function["name"], function["parameters"]["required"]) == ("recall_memory", ["scope", "query_summary"])
    assert function["parameters"]["properties"]["scope"]["enum"] == ["personal", "departmental", "ministry"]
    assert function["parameters"]["properties"]["limit"]["default"] == 5
    assert [Persona.NOOR.may(tool) for tool in (RECALL_MEMORY_TOOL, KEEP_MEMORY_TOOL, FORGET_MEMORY_TOOL)] == [
        True, False, False
    ]  # fmt: skip


@pytest.mark.parametrize("value", ["a\x00b", "\ud800"])
async def test_what_no_store_keeps_is_refused(value: str) -> None:
    who = calling(Principal(tenant="acme", user="ann", **Persona.MAESTRO.rights))
    handlers = scoping(Rooms())
    for request in (
        KeepMemory.model_construct(scope=Scope.GLOBAL, key=value, content="x", confidence=1.0),
        KeepMemory.model_construct(scope=Scope.GLOBAL, key="x", content=value, confidence=1.0),
    ):
        with pytest.raises(BadRequest):
            await handlers.keep_memory(who, request)
    with pytest.raises(BadRequest):
        await handlers.forget_memory(who, ForgetMemory.model_construct(scope=Scope.GLOBAL, key=value))
