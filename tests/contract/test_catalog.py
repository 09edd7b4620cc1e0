"""What holds for all contracts together: subjects, owners, tools, errors."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from phronesis_bus.topology import consumers, streams
from phronesis_contracts import EVERYONE, Event, ServiceError
from phronesis_contracts.catalog import ASKS, EVENTS, JOBS, OUTS, RPCS, TOOLS
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.errors import codes
from phronesis_contracts.service import AUDITED, HEALTH, SERVICES, SPANS
from scripts.messages import contracts, kind, name
from scripts.tree import ROOT
from tests.support.cases import for_each

_GRAMMAR = re.compile(r"^[a-z]+\.v[1-9]\d*(\.[a-z][a-z0-9_]*)+$")
_MAYBE = re.compile(r"(rpc|job|evt|out)\.")
_LITERAL = re.compile(r"^\$?(rpc|job|evt|out)\.")


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


@for_each("contract", list(contracts()))
def test_a_subject_is_service_version_and_name(contract: object) -> None:
    subject = contract.subject  # type: ignore[attr-defined]
    assert _GRAMMAR.match(subject)
    assert subject.split(".")[0] in SERVICES


def test_no_two_contracts_share_a_subject() -> None:
    doubles = [key for key, count in Counter(name(contract) for contract in contracts()).items() if count > 1]
    assert doubles == []


def test_every_service_answers_for_its_health_its_spans_and_what_it_audits() -> None:
    assert set(HEALTH) == set(SPANS) == set(AUDITED) == set(SERVICES)
    assert {*HEALTH.values(), *SPANS.values()} <= set(RPCS)
    assert set(AUDITED.values()) <= set(EVENTS)


def test_questions_go_one_way_only() -> None:
    order = ("gateway", "orchestrator", "memory", "graph")
    for asker, asked in ASKS.items():
        for other in asked:
            assert asker not in ASKS[other]
            if asker in order and other in order:
                assert order.index(asker) < order.index(other)


def test_a_tool_is_known_by_one_name_and_owned_by_the_service_of_its_subject() -> None:
    assert all(key == tool.name for key, tool in TOOLS.items())
    assert all(tool.rpc in RPCS for tool in TOOLS.values())
    assert all(tool.agents <= EVERYONE for tool in TOOLS.values())


@pytest.mark.req("O-013", "O-222", "O-223", "O-225", "O-226", "O-227")
def test_another_name_of_a_tool_is_one_for_agents_and_lets_nobody_do_more() -> None:
    others = {}
    for tool in TOOLS.values():
        of_it = [one for one in TOOLS.values() if one.rpc is tool.rpc and one is not tool]
        assert {(one.risk, one.agents, one.irreversible) for one in of_it} <= {(tool.risk, tool.agents, tool.irreversible)}
        if of_it and tool.name.startswith("discuss_"):
            others[tool.name] = of_it[0].name
    assert others == {
        "discuss_semantic_search": "semantic.search.v1",
        "discuss_hybrid_search": "hybrid.search.v1",
        "discuss_workload_assess": "workload.assess.v1",
        "discuss_graph_pagerank": "graph.pagerank.v1",
        "discuss_graph_communities": "graph.communities.v1",
    }
    assert len({tool.rpc for tool in TOOLS.values()}) == len(TOOLS) - len(others)


@pytest.mark.req("C-06")
def test_each_type_of_the_registry_has_two_tools_of_its_own() -> None:
    mine = [tool for tool in TOOLS if tool.endswith((".create.v1", ".update.v1")) and tool.partition(".")[0] in TYPES]
    assert len(mine) == 2 * len(TYPES)


def test_every_follower_has_a_durable_consumer_of_its_own() -> None:
    durables = [(stream, config["durable_name"]) for stream, config in consumers(30)]
    assert len(set(durables)) == len(durables)
    assert len(durables) == 2 * len(JOBS) + sum(len(event.followers) for event in EVENTS)


def test_no_stream_takes_a_question() -> None:
    caught = [subject for stream in streams() for subject in stream["subjects"]]
    assert not [subject for subject in caught if subject.startswith(("rpc", ">", "*"))]
    assert len(set(caught)) == len(caught), "streams do not overlap"


def test_every_follower_and_owner_is_a_service() -> None:
    named = {follower for event in EVENTS for follower in (*event.followers, *event.hearers)}
    owners = {contract.service for contract in (*RPCS, *JOBS, *EVENTS, *OUTS)}
    assert named | owners <= set(SERVICES)


def test_subjects_stand_in_the_contracts_alone() -> None:
    allowed = {ROOT / "libs/bus/phronesis_bus/permissions.py", ROOT / "libs/bus/phronesis_bus/topology.py"}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value!r}"
        for path in sources("libs", "services", "deploy")
        if "contracts" not in path.parts and path not in allowed and _MAYBE.search(path.read_text())
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _LITERAL.match(node.value)
    ]
    assert found == []


def test_each_contract_is_served_taken_or_followed_once_by_the_service_that_owns_it() -> None:
    wired: Counter[str] = Counter()
    for service in SERVICES:
        for path in sources(f"services/{service}"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("serve", "take", "follow") and len(node.args) > 1:
                    wired[f"{service} {ast.unparse(node.func)} {ast.unparse(node.args[1]).rsplit('.', 1)[-1]}"] += 1
    # What a service follows and hears as well, it follows twice: once for all copies, and in every copy.
    both = {f"{one} follow {key}" for key, event in named_events().items() for one in {*event.followers} & {*event.hearers}}
    assert {entry: count for entry, count in wired.items() if count != (2 if entry in both else 1)} == {}
    assert expected() - set(wired) == set(), "a contract that nobody serves, takes or follows"


def named_events() -> dict[str, Event[Any]]:
    """The events by the names of their constants."""
    from phronesis_contracts import catalog

    found = {key: value for module in catalog._MODULES for key, value in vars(module).items() if isinstance(value, Event)}
    return found


def expected() -> set[str]:
    """What the services have to wire, by the names of the contracts' constants."""
    from phronesis_contracts import catalog

    named = {id(value): key for module in catalog._MODULES for key, value in vars(module).items()}
    tools = {tool.rpc: tool for tool in reversed(list(TOOLS.values()))}  # of several names for one contract the first is served
    served = {f"{rpc.service} serve {named[id(tools.get(rpc, rpc))]}" for rpc in RPCS if id(tools.get(rpc, rpc)) in named}
    taken = {f"{job.service} take {named[id(job)]}" for job in JOBS}
    followed = {
        f"{follower} follow {named[id(event)]}"
        for event in EVENTS
        if id(event) in named
        for follower in {*event.followers, *event.hearers}
    }
    return served | taken | followed


@for_each("code", sorted(codes()))
def test_an_error_crosses_as_a_body_and_comes_back_as_its_class(code: str) -> None:
    error = codes()[code]("a reason", field="items.0", retry_after=2)
    back = ServiceError.from_body(error.body())
    assert type(back) is type(error)
    assert back.body() == error.body()


def test_two_errors_with_one_code_fail_when_they_are_defined() -> None:
    with pytest.raises(TypeError, match="share the code"):

        class Another(ServiceError):
            code = "not_found"


def test_an_error_without_a_code_of_its_own_fails_when_it_is_defined() -> None:
    with pytest.raises(TypeError, match="no code of its own"):

        class Nameless(ServiceError):
            pass


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"code": "memory.of_a_later_release", "status": 404, "detail": "gone"}, "not_found"),
        ({"code": "new", "status": 409}, "conflict"),
        ({"code": "new", "status": 418}, "internal"),
        ({}, "internal"),
    ],
)
def test_a_code_of_a_later_release_becomes_the_class_of_its_status(body: dict[str, object], code: str) -> None:
    assert ServiceError.from_body(body).code == code


def test_no_subject_kind_is_unknown() -> None:
    assert {kind(contract) for contract in contracts()} == {"rpc", "job", "evt", "out"}
