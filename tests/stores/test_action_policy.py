"""A tenant's policy of actions on a real Postgres: whole versions, one after the other, with what was before them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from phronesis_bus import Call
from phronesis_contracts import BadRequest, Forbidden, KeyReused, NotFound, Principal, Unavailable
from phronesis_contracts.approvals import (
    ActionPolicy,
    ActionRule,
    GetActionPolicy,
    ListPolicyVersions,
    PolicyChanged,
    PolicyVersion,
    Ruling,
    SetActionPolicy,
)
from phronesis_contracts.origins import OriginKind
from phronesis_contracts.tools import Effect
from phronesis_orchestrator.approvals.handlers import FRESH, PolicyCache, PolicyHandlers
from phronesis_orchestrator.approvals.store import PostgresPolicies
from phronesis_postgres import Database
from tests.support.personas import Persona
from tests.support.servers import PostgresServer

REFUSES = ActionRule(origin=OriginKind.WEB, effect=Effect.MESSAGE, ruling=Ruling.REFUSE)
ADMIN = Principal(tenant="acme", user="boss", **Persona.ADMIN.rights)
MEMBER = Principal(tenant="acme", user="ann")


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with postgres.fresh_schema("orchestrator") as settings, Database.open(settings, "orchestrator") as database:
        yield database


class Copy:
    """One copy of the service, on a clock of its own that stands still."""

    def __init__(self, database: Database) -> None:
        self.now = 0.0
        store = PostgresPolicies(database)
        self.cache = PolicyCache(store.in_force, lambda: self.now)
        self.handlers = PolicyHandlers(store, self.cache, lambda: None)

    async def set(self, replaces: int, who: Principal = ADMIN, key: str | None = None, **more: Any) -> PolicyVersion:
        return await self.handlers.set(Call(who, "gateway", key), SetActionPolicy(replaces=replaces, **more))

    async def get(self, version: int | None = None, who: Principal = ADMIN) -> PolicyVersion:
        return await self.handlers.get(Call(who, "gateway"), GetActionPolicy(version=version))

    async def numbers(self, **more: Any) -> list[int]:
        found = await self.handlers.list(Call(ADMIN, "gateway"), ListPolicyVersions(**more))
        return [one.policy.version for one in found.versions]


@pytest.fixture
def copy(database: Database) -> Copy:
    return Copy(database)


async def news(database: Database, part: str) -> list[str]:
    async with database.connection("acme") as connection:
        rows = await connection.fetch("SELECT body FROM outbox WHERE subject LIKE $1 ORDER BY id", f"%{part}%")
    return [row["body"].decode() for row in rows]


async def test_a_tenant_that_set_nothing_has_the_policy_that_the_system_comes_with(copy: Copy) -> None:
    assert await copy.get(who=MEMBER) == PolicyVersion(policy=ActionPolicy())
    assert await copy.numbers() == []


async def test_a_policy_that_is_set_holds_whole_from_the_next_look_on(copy: Copy) -> None:
    await copy.set(0, rules=(REFUSES,), egress=("Example.ORG.", "*.bücher.example"), approval_seconds=3600.0)
    made = await copy.set(1, egress=("example.net",))
    assert (made.policy, made.changed_by) == (ActionPolicy(version=2, egress=("example.net",)), "boss")
    assert await copy.cache.load("acme") == made.policy
    first = await copy.get(1)
    hosts = ("example.org", "*.xn--bcher-kva.example")
    assert first.policy == ActionPolicy(version=1, rules=(REFUSES,), egress=hosts, approval_seconds=3600.0)


@pytest.mark.parametrize("replaces", [0, 2])
async def test_a_change_that_was_made_for_another_version_is_a_conflict(copy: Copy, replaces: int) -> None:
    await copy.set(0)
    with pytest.raises(PolicyChanged) as refused:
        await copy.set(replaces, egress=("example.org",))
    assert (refused.value.field, (await copy.get()).policy) == ("replaces", ActionPolicy(version=1))


async def test_of_many_changes_at_once_one_holds(database: Database) -> None:
    copies = [Copy(database) for _ in range(8)]
    found = await asyncio.gather(
        *(copy.set(0, egress=(f"{at}.example.org",)) for at, copy in enumerate(copies)), return_exceptions=True
    )
    assert sum(isinstance(one, PolicyChanged) for one in found) == 7
    (made,) = [one for one in found if isinstance(one, PolicyVersion)]
    assert await copies[0].get() == made


async def test_an_earlier_version_holds_again_under_a_new_number(copy: Copy) -> None:
    await copy.set(0, rules=(REFUSES,), egress=("example.org",), approval_seconds=600.0)
    await copy.set(1)
    again = await copy.set(2, restores=1)
    assert (again.restores, again.policy) == (1, (await copy.get(1)).policy.model_copy(update={"version": 3}))
    assert (await copy.set(3, restores=0)).policy == ActionPolicy(version=4)
    assert (await copy.numbers(limit=2), await copy.numbers(before=3)) == ([4, 3], [2, 1])


async def test_there_is_no_going_back_to_a_version_that_never_was(copy: Copy) -> None:
    with pytest.raises(NotFound):
        await copy.set(0, restores=7)
    with pytest.raises(NotFound):
        await copy.get(7)
    assert await copy.numbers() == []


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("egress", {"egress": ("*",)}),
        ("egress", {"egress": ("*.com",)}),
        ("egress", {"egress": ("https://example.org",)}),
        ("egress", {"egress": ("*.10.0.0.1",)}),
        ("egress", {"egress": ("a b.org",)}),
        ("egress", {"egress": ("",)}),
        ("rules", {"rules": (REFUSES, REFUSES.model_copy(update={"ruling": Ruling.ALLOW}))}),
        ("rules", {"rules": (ActionRule(origin=OriginKind.WEB, effect=Effect.READ, ruling=Ruling.REFUSE),)}),
        ("restores", {"restores": 0, "egress": ("example.org",)}),
    ],
)
async def test_a_policy_that_says_nothing_clear_is_refused_by_its_field(copy: Copy, field: str, given: dict[str, Any]) -> None:
    with pytest.raises(BadRequest) as refused:
        await copy.set(0, **given)
    assert (refused.value.field, await copy.numbers()) == (field, [])


OUTSIDER = ADMIN.model_copy(update={"inbox": "_INBOX_acme"})


async def test_a_policy_is_changed_by_administrators_alone_and_by_no_system_on_the_bus(copy: Copy) -> None:
    for who in (MEMBER, OUTSIDER):
        with pytest.raises(Forbidden):
            await copy.set(0, who)
        with pytest.raises(Forbidden):
            await copy.get(0, who)
    with pytest.raises(Forbidden):
        await copy.get(who=OUTSIDER)
    assert await copy.numbers() == []


async def test_a_repeat_with_the_same_key_sets_once(copy: Copy) -> None:
    first = await copy.set(0, key="http/boss/1", egress=("example.org",))
    assert await copy.set(0, key="http/boss/1", egress=("example.org",)) == first
    with pytest.raises(KeyReused):
        await copy.set(0, key="http/boss/1", egress=("example.net",))
    assert await copy.numbers() == [1]


async def test_a_change_is_audited_whole_and_announced_to_all_copies(database: Database, copy: Copy) -> None:
    await copy.set(0, rules=(REFUSES,), egress=("example.org",))
    (entry,), (said,) = await news(database, "audited"), await news(database, "action_policy_set")
    assert all(part in entry for part in ('"action":"action_policy.set"', '"ruling":"refuse"', '"example.org"', '"boss"'))
    assert '"version":1' in said


async def test_another_tenant_has_nothing_of_it(copy: Copy) -> None:
    await copy.set(0, egress=("example.org",))
    assert await copy.cache.load("other") == ActionPolicy()
    assert (await copy.get(who=Principal(tenant="other", user="x"))).policy == ActionPolicy()


async def test_a_policy_is_read_again_when_its_time_is_over_though_nobody_said_that_it_changed(database: Database) -> None:
    here, there = Copy(database), Copy(database)
    assert await here.cache.load("acme") == ActionPolicy()
    made = await there.set(0, egress=("example.org",))
    assert await here.cache.load("acme") == ActionPolicy()
    here.now = FRESH
    assert await here.cache.load("acme") == made.policy


async def test_what_was_read_before_a_change_is_not_kept_after_it(database: Database) -> None:
    cache: PolicyCache
    answers = [PolicyVersion(policy=ActionPolicy(version=1)), PolicyVersion(policy=ActionPolicy(version=2))]

    async def read(tenant: str) -> PolicyVersion:
        found = answers.pop(0)
        if answers:
            cache.forget(tenant)
        return found

    cache = PolicyCache(read, lambda: 0.0)
    await cache.load("acme")
    assert (await cache.load("acme")).version == 2


@pytest.mark.parametrize("error", [Unavailable("the store is away"), RuntimeError("a broken row")], ids=str)
async def test_a_policy_that_cannot_be_read_lets_nothing_out_though_it_did_before(error: Exception) -> None:
    now = 0.0
    answers: list[PolicyVersion | Exception] = [PolicyVersion(policy=ActionPolicy(version=1, egress=("example.org",))), error]

    async def read(tenant: str) -> PolicyVersion:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    cache = PolicyCache(read, lambda: now)
    assert (await cache.load("acme")).egress == ("example.org",)
    now = FRESH
    assert await cache.load("acme") == ActionPolicy()
