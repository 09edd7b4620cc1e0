"""What NetworkPolicies allow, by the rules of Kubernetes: a pod that one selects takes what some of them name, and no more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Policy = dict[str, Any]
Port = tuple[str, int]
"""Protocol and number."""


@dataclass(frozen=True)
class End:
    """One end of a connection: a pod, or an address outside the cluster."""

    name: str
    address: str
    namespace: str | None = None
    labels: dict[str, str] = field(default_factory=dict)


class UnknownRule(Exception):
    """A policy says something that is not understood here."""


def arrows(policies: Iterable[Policy], ends: list[End], ports: Iterable[Port]) -> set[tuple[str, str, str]]:
    """Every connection that is allowed: from, to, protocol/port. Between two ends outside the policies nothing is asked."""
    rules = list(policies)
    wanted = list(ports)
    sends = {end.name: _rules(rules, end, "egress") for end in ends}
    takes = {end.name: _rules(rules, end, "ingress") for end in ends}
    found = set()
    for source in ends:
        for target in ends:
            if sends[source.name] is None and takes[target.name] is None:
                continue
            out = _open(sends[source.name], "to", target, wanted)
            found |= {
                (source.name, target.name, f"{protocol}/{port}")
                for protocol, port in out & _open(takes[target.name], "from", source, wanted)
            }
    return found


def _rules(policies: list[Policy], end: End, direction: str) -> list[tuple[str, Any]] | None:
    """The rules that hold for an end, with their policies' namespaces; `None` where no policy selects it."""
    chosen = [
        policy
        for policy in policies
        if end.namespace == policy["metadata"]["namespace"]
        and direction.capitalize() in policy["spec"]["policyTypes"]
        and _matches(policy["spec"]["podSelector"], end.labels)
    ]
    if not chosen:
        return None
    return [(policy["metadata"]["namespace"], rule) for policy in chosen for rule in policy["spec"].get(direction, ())]


def _open(rules: list[tuple[str, Any]] | None, side: str, other: End, ports: list[Port]) -> set[Port]:
    if rules is None:
        return set(ports)
    return {
        port
        for namespace, rule in rules
        if side not in rule or any(_is(peer, namespace, other) for peer in rule[side])
        for port in _ports(rule, ports)
    }


def _ports(rule: Any, ports: list[Port]) -> Iterator[Port]:
    if "ports" not in rule:
        yield from ports
        return
    for named in rule["ports"]:
        if set(named) - {"port", "protocol"} or not isinstance(named["port"], int):
            raise UnknownRule(str(named))
        yield from (port for port in ports if port == (named.get("protocol", "TCP"), named["port"]))


def _is(peer: dict[str, Any], namespace: str, end: End) -> bool:
    match sorted(peer):
        case ["ipBlock"]:
            block = peer["ipBlock"]
            return _within(end.address, block["cidr"]) and not any(_within(end.address, x) for x in block.get("except", ()))
        case ["podSelector"]:
            return end.namespace == namespace and _matches(peer["podSelector"], end.labels)
        case ["namespaceSelector"] | ["namespaceSelector", "podSelector"]:
            there = {"kubernetes.io/metadata.name": end.namespace or ""}
            chosen = end.namespace is not None and _matches(peer["namespaceSelector"], there)
            return chosen and _matches(peer.get("podSelector", {}), end.labels)
    raise UnknownRule(str(peer))


def _within(address: str, network: str) -> bool:
    return ip_address(address) in ip_network(network)


def _matches(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    if set(selector) - {"matchLabels"}:
        raise UnknownRule(str(selector))
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
