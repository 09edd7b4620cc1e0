"""The rules of each tenant are read once, and anew when one of them was written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from phronesis_bus import Call, News
from phronesis_contracts import Principal
from phronesis_contracts.constitution.insight import CheckPolicy
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import ConstitutionChanged, NodeNews, Operation
from phronesis_graph.constitution.guardrails import RuleCache
from phronesis_graph.constitution.writes import PolicyHandlers
from tests.support.personas import Persona


class Source:
    """Rules in a dict, and how often they were read."""

    def __init__(self) -> None:
        self.rules: dict[str, list[ConstitutionNode]] = {}
        self.reads = 0
        self.may = asyncio.Event()
        self.may.set()
        self.begun = asyncio.Event()

    def add(self, tenant: str, id: str, trigger: str) -> None:
        told = {"id": id, "type": "guardrail", "layer": "foundation", "title": id, "trigger": trigger, "severity": "high"}
        self.rules.setdefault(tenant, []).append(ConstitutionNode.model_validate(told))

    async def read(self, tenant: str) -> Sequence[ConstitutionNode]:
        self.reads += 1
        self.begun.set()
        found = list(self.rules.get(tenant, ()))
        await self.may.wait()
        return found


def changed(type: str) -> ConstitutionChanged:
    node = NodeNews(id="x", type=type, layer=Layer.FOUNDATION, operation=Operation.UPDATE, version=2)
    return ConstitutionChanged(nodes=(node,))


async def ids(ruling: RuleCache, tenant: str = "acme") -> list[str]:
    return [rule.mention.id for rule in await ruling.of(tenant)]


async def test_rules_are_read_once_for_each_tenant() -> None:
    source = Source()
    ruling = RuleCache(source)
    source.add("acme", "a", "night")
    source.add("other", "b", "day")
    assert [await ids(ruling), await ids(ruling), await ids(ruling, "other"), await ids(ruling, "other")] == [
        *(["a"], ["a"], ["b"], ["b"])
    ]
    assert source.reads == 2


async def test_news_of_a_rule_drops_its_tenants_rules_and_news_of_another_node_does_not() -> None:
    source = Source()
    ruling = RuleCache(source)
    await ids(ruling)
    source.add("acme", "a", "night")
    for type in ("value", "goal"):
        await ruling.on_constitution_changed(News("acme", "1", 1), changed(type))
    await ruling.on_constitution_changed(News("other", "2", 1), changed("guardrail"))
    assert await ids(ruling) == []
    for type in ("guardrail", "principle"):
        await ruling.on_constitution_changed(News("acme", "3", 1), changed(type))
        assert await ids(ruling) == ["a"]
    assert source.reads == 3


async def test_rules_that_were_written_while_they_were_read_are_not_kept() -> None:
    source = Source()
    ruling = RuleCache(source)
    source.may.clear()
    reading = asyncio.create_task(ids(ruling))
    await source.begun.wait()
    source.add("acme", "a", "night")
    ruling.drop("acme")
    source.may.set()
    assert await reading == []
    assert await ids(ruling) == ["a"]


async def test_after_the_broker_was_away_everything_is_read_anew() -> None:
    source = Source()
    ruling = RuleCache(source)
    await ids(ruling)
    source.add("acme", "a", "night")
    ruling.drop_all()
    assert await ids(ruling) == ["a"]


async def test_many_tenants_do_not_fill_the_memory() -> None:
    source = Source()
    ruling = RuleCache(source)
    for n in range(300):
        await ids(ruling, f"t{n}")
    assert len(ruling._kept) == 256


async def test_a_policy_is_checked_without_writing() -> None:
    source = Source()
    source.add("acme", "a", "effortHours > 40")
    policing = PolicyHandlers(RuleCache(source))
    call = Call(Principal(tenant="acme", user="ann", **Persona.ADMIN.rights), "gateway")
    bad = await policing.check_policy(call, CheckPolicy(text="x", type="Task", fields={"effortHours": 41}))
    assert bad.model_dump(mode="json") == {
        "hits": [
            {
                "rule": {"id": "a", "type": "guardrail", "title": "a"},
                "severity": "block",
                "because": "effortHours is 41 (effortHours > 40)",
            }
        ],
        "allowed": False,
        "unenforced": [],
    }
    good = await policing.check_policy(call, CheckPolicy(text="x", fields={"effortHours": 40}))
    assert (good.hits, good.allowed) == ((), True)
