"""What is left out of a part of the context that is over its budget: fields and relationships, never a node (O-334).

In this order, and no more than it takes:

1. what no list of the second version tells: `metadata`, `provenance`, `properties`,
2. descriptions, the longest first,
3. the typed texts of nodes (`narrative`, `rationale`, ...), the longest first,
4. the times and versions of nodes,
5. relationships, from the last, and parents, the longest lists first,
6. summaries, the longest first.

`id`, `type`, `layer`, `title` and `status` stay, though the part be over its budget with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import phronesis_tokens as tokens
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

Node = TypeVar("Node", bound=ConstitutionNode)
Body = dict[str, Any]

_STAYS = frozenset({"id", "type", "layer", "title", "status"})
_BAGS = frozenset({"metadata", "provenance", "properties"})
_TIMES = frozenset({"createdAt", "updatedAt", "version"})
_OWN = _STAYS | _BAGS | _TIMES | {"summary", "description", "parents"}
_RULES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("free properties", _BAGS.__contains__),
    ("descriptions", "description".__eq__),
    ("typed texts", lambda name: name not in _OWN),
    ("times and versions", _TIMES.__contains__),
    ("relationships", "parents".__eq__),
    ("summaries", "summary".__eq__),
)


@dataclass(frozen=True)
class Trimmed(Generic[Node]):
    """What is told of a part."""

    nodes: tuple[Node, ...]
    links: tuple[ConstitutionLink, ...]
    tokens: int
    """Of the nodes and relationships as they are sent."""
    left_out: tuple[str, ...] = ()


def size(nodes: Sequence[ConstitutionNode], links: Sequence[ConstitutionLink]) -> int:
    """Tokens of nodes and relationships as they are sent."""
    return _size([_body(node) for node in nodes], [_body(link) for link in links])


def trimmed(nodes: Sequence[Node], links: Sequence[ConstitutionLink], budget: int) -> Trimmed[Node]:
    """As much of a part as its budget allows.

    Args:
        nodes: all of which stay.
        links: the relationships between them.
        budget: tokens that it may have.
    """
    bodies, joined = [_body(node) for node in nodes], [_body(link) for link in links]
    left = _size(bodies, joined)
    if left <= budget:
        return Trimmed(tuple(nodes), tuple(links), left)
    told = []
    for rule, concerns in _RULES:
        gone = 0
        for cost, drop in _candidates(rule, concerns, bodies, joined):
            drop()
            gone, left = gone + 1, left - cost
            if left <= budget:  # by the costs of single fields, which are near the truth and not it
                left = _size(bodies, joined)
            if left <= budget:
                break
        if gone:
            told.append(f"{rule} ({gone})")
        if left <= budget:
            break
    kept = tuple(type(node).model_validate(body) for node, body in zip(nodes, bodies, strict=True))
    return Trimmed(kept, tuple(links[: len(joined)]), _size(bodies, joined), tuple(told))


def _candidates(
    rule: str, concerns: Callable[[str], bool], bodies: list[Body], links: list[Body]
) -> Iterator[tuple[int, Callable[[], Any]]]:
    """What a rule leaves out, piece by piece: the tokens of each, and how to leave it out."""
    if rule == "relationships":
        for link in reversed(list(links)):
            yield _cost(link), links.pop
    fields = [
        (_cost({name: value}), place, name)
        for place, body in enumerate(bodies)
        for name, value in body.items()
        if concerns(name)
    ]
    for cost, place, name in sorted(fields, reverse=True):
        yield cost, partial(bodies[place].pop, name)


def _body(message: ConstitutionNode | ConstitutionLink) -> Body:
    return message.model_dump(mode="json")


def _size(bodies: list[Body], links: list[Body]) -> int:
    return tokens.count(tokens.clean(_json(bodies))) + tokens.count(tokens.clean(_json(links)))


def _cost(body: Body) -> int:
    return max(1, tokens.count(tokens.clean(_json(body))) - 1)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
