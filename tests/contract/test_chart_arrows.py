"""The chart's network policies allow the arrows of the architecture, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import product

import pytest

from phronesis_contracts.catalog import ASKS
from phronesis_contracts.service import SERVICES
from phronesis_media.fetching.web import is_public
from scripts.chart import Object
from tests.support.chart import BUILD_SECONDS, NAMESPACE, of_kind, rendered, workloads
from tests.support.network import End, arrows

pytestmark = [pytest.mark.verify, pytest.mark.timeout(BUILD_SECONDS)]

STORES = {
    "gateway": ("postgres",),
    "orchestrator": ("postgres",),
    "memory": ("postgres", "weaviate"),
    "instructions": ("postgres",),
    "graph": ("neo4j",),
    "media": (),
}
"""Which store holds what a service owns; uploads are in NATS' Object Store."""
PORTS = {"nats": (4222,), "postgres": (5432,), "neo4j": (7687,), "weaviate": (8080, 50051)}
MANAGED = {
    "nats": ("10.60.1.9", (4222,)),
    "postgres": ("10.60.2.9", (5432,)),
    "neo4j": ("10.60.3.9", (7687,)),
    "weaviate": ("10.60.4.9", (443, 50051)),
}
"""Addresses in the networks that the set `managed` names, and the ports of its stores."""
WEB = {"orchestrator": (443,), "media": (80, 443)}
"""The language model; files by address, and the models that read them."""
PUBLIC = ("93.184.215.14", "2606:4700::1111")
OUTSIDE = [
    End("ingress", "10.9.0.1", "ingress-nginx", {"app.kubernetes.io/name": "ingress-nginx"}),
    End("prometheus", "10.9.0.2", "monitoring", {"app.kubernetes.io/name": "prometheus"}),
    End("collector", "10.9.0.3", "monitoring", {"app.kubernetes.io/name": "collector"}),
    End("keda", "10.9.0.4", "keda", {"app": "keda-operator"}),
    End("dns", "10.9.0.5", "kube-system", {"k8s-app": "kube-dns"}),
    End("api", "10.9.0.6", "kube-system", {"component": "kube-apiserver"}),
    End("neighbour", "10.9.0.7", NAMESPACE, {"app": "somebody-else"}),
    End("other-release", "10.9.0.8", "staging", {"app.kubernetes.io/name": "phronesis"}),
    End("metadata", "169.254.169.254"),
    End("inside", "10.1.2.3"),
    *(End(address, address) for address in PUBLIC),
    *(End(f"managed-{name}", address) for name, (address, _) in MANAGED.items()),
]
NUMBERS = (22, 53, 80, 443, 4222, 4318, 5432, 6222, 6443, 7474, 7687, 8080, 8222, 9464, 50051)
ALL_PORTS = [("TCP", number) for number in NUMBERS] + [("UDP", 53)]


def policies(values: str) -> list[Object]:
    made = copy.deepcopy(of_kind(values, "NetworkPolicy"))
    for policy in made:
        policy["metadata"]["namespace"] = NAMESPACE
    return made


def pods(values: str) -> list[End]:
    return [
        End(found.component, f"10.8.0.{number}", NAMESPACE, found.template["metadata"]["labels"])
        for number, found in enumerate(workloads(values), 1)
    ]


def allowed(values: str, rules: list[Object]) -> set[tuple[str, str, str]]:
    return arrows(rules, pods(values) + OUTSIDE, ALL_PORTS)


def expected(values: str) -> set[tuple[str, str, str]]:
    return set(_inside(values)) | set(_around(values))


def _inside(values: str) -> Iterator[tuple[str, str, str]]:
    """Questions, jobs and news go by NATS, so all who may ask or be asked reach it, and none reaches another."""
    uses = {name: ("nats", *STORES[name]) for name in ASKS} | {"declare": ("nats",), "migrate": ("postgres",)}
    for user, stores in uses.items():
        for store in stores:
            target, ports = (f"managed-{store}", MANAGED[store][1]) if values == "managed" else (store, PORTS[store])
            yield from ((user, target, f"TCP/{port}") for port in ports)
    if values == "production":
        yield "nats", "nats", "TCP/6222"


def _around(values: str) -> Iterator[tuple[str, str, str]]:
    programs = (*SERVICES, "declare")
    resolving = (*programs, "migrate", *(("nats",) if values == "production" else ()))
    yield from ((user, "dns", f"{protocol}/53") for user, protocol in product(resolving, ("TCP", "UDP")))
    yield "ingress", "gateway", "TCP/8080"
    yield from ((reader, name, "TCP/9464") for reader, name in product(("prometheus", "collector"), programs))
    if values != "managed":
        yield from ((reader, "nats", "TCP/8222") for reader in ("prometheus", "collector", "keda"))
    if values == "production":
        yield from ((name, "collector", "TCP/4318") for name in programs)
    for name, ports in WEB.items():
        yield from ((name, address, f"TCP/{port}") for address, port in product(PUBLIC, ports))


@pytest.mark.parametrize("values", ["small", "production", "managed"])
def test_the_policies_allow_the_arrows_of_the_architecture_and_nothing_else(values: str) -> None:
    assert allowed(values, policies(values)) == expected(values)


@pytest.mark.parametrize("values", ["small", "production", "managed"])
def test_every_pod_is_selected_in_both_directions(values: str) -> None:
    shut = [policy for policy in policies(values) if policy["metadata"]["name"].endswith("-nothing-else")]
    assert [policy["spec"]["policyTypes"] for policy in shut] == [["Ingress", "Egress"]]
    assert allowed(values, shut) == set()


def test_no_rule_can_be_taken_away() -> None:
    whole = policies("production")
    wanted = expected("production")
    useless = []
    for number, policy in enumerate(whole):
        for direction in ("ingress", "egress"):
            for at in range(len(policy["spec"].get(direction, ()))):
                fewer = copy.deepcopy(whole)
                del fewer[number]["spec"][direction][at]
                if allowed("production", fewer) == wanted:
                    useless.append((policy["metadata"]["name"], direction, at))
    assert useless == []


@pytest.mark.parametrize(
    ("name", "direction", "rule"),
    [
        ("graph", "egress", {"ports": [{"port": 5432}], "to": [{"podSelector": {}}]}),
        ("gateway", "ingress", {"from": [{"namespaceSelector": {}}], "ports": [{"port": 8080}]}),
        ("postgres", "ingress", {}),
        ("media", "egress", {"to": [{"ipBlock": {"cidr": "169.254.0.0/16"}}]}),
    ],
)
def test_a_rule_too_many_is_seen(name: str, direction: str, rule: Object) -> None:
    more = policies("production")
    policy = next(each for each in more if each["metadata"]["name"] == f"phronesis-{name}")
    policy["spec"].setdefault(direction, []).append(rule)
    if name == "graph":  # both ends have to say so
        store = next(each for each in more if each["metadata"]["name"] == "phronesis-postgres")
        store["spec"]["ingress"].append({"from": [{"podSelector": {}}]})
    assert allowed("production", more) != expected("production")


def test_the_internet_of_the_policies_is_that_of_the_media_service() -> None:
    web = next(policy for policy in policies("small") if policy["metadata"]["name"] == "phronesis-media")
    ends = [End(text, text) for text in EDGES]
    media = End("media", "10.8.0.1", NAMESPACE, web["spec"]["podSelector"]["matchLabels"])
    reached = {target for _, target, _ in arrows([web], [media, *ends], [("TCP", 443)]) if target in EDGES}
    assert reached == {text for text in EDGES if is_public(text)}


EDGES = (
    *("1.1.1.1", "8.8.8.8", "223.255.255.254", "11.0.0.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "198.20.0.1"),
    *("0.0.0.1", "10.255.255.255", "100.64.0.1", "127.0.0.1", "168.63.129.16", "169.254.169.254", "172.31.255.255"),
    *("192.0.0.9", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"),
    *("224.0.0.1", "240.0.0.1", "255.255.255.255"),
    *("2606:4700::1111", "2a00:1450::1", "2001::1", "2001:1ff::1", "2001:db8::1", "2002:a00:1::1", "3fff::1"),
    *("::1", "fe80::1", "fc00::1", "ff02::1", "64:ff9b::a00:1", "4000::1"),
)
"""Addresses on both sides of each limit."""


def test_policies_can_be_left_to_others() -> None:
    kinds = {found["kind"] for found in rendered("small", "global.networkPolicies.enabled=false")}
    assert "NetworkPolicy" not in kinds
