"""The parts that are read from the graph, foundation and vision, trimmed to their budget: never by a whole node.

Left out in this order, and no more than it takes: `metadata`, `provenance` and `properties`; descriptions, longest first; the
typed texts of nodes; their times and versions; relationships and parents; summaries. `id`, `type`, `layer`, `title` and
`status` stay though the part be over its budget with them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import phronesis_tokens as tokens
from phronesis_contracts import Principal, ServiceError, Unavailable
from phronesis_contracts.constitution.lists import (
    LIST_FOUNDATION,
    LIST_FOUNDATION_TOOL,
    LIST_VISION,
    LIST_VISION_TOOL,
    LISTS,
    ListFoundation,
    ListLayer,
    ListVision,
    VisionNode,
)
from phronesis_contracts.constitution.registry import Layer, Lifecycle
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

from .calendar import Ask, ask_twice

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
class TrimmedPart(Generic[Node]):
    """What is told of a part."""

    nodes: tuple[Node, ...]
    links: tuple[ConstitutionLink, ...]
    tokens: int
    """Of the nodes and relationships as they are sent."""
    left_out: tuple[str, ...] = ()


def part_size(nodes: Sequence[ConstitutionNode], links: Sequence[ConstitutionLink]) -> int:
    """Tokens of nodes and relationships as they are sent."""
    return _size([_body(node) for node in nodes], [_body(link) for link in links])


def trim(nodes: Sequence[Node], links: Sequence[ConstitutionLink], budget: int) -> TrimmedPart[Node]:
    """As much of a part as its budget allows. `budget`: tokens that it may have."""
    bodies, joined = [_body(node) for node in nodes], [_body(link) for link in links]
    left = _size(bodies, joined)
    if left <= budget:
        return TrimmedPart(tuple(nodes), tuple(links), left)
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
    return TrimmedPart(kept, tuple(links[: len(joined)]), _size(bodies, joined), tuple(told))


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


log = logging.getLogger(__name__)

FOUNDATION, VISION, WORK = 15_000, 8_000, 2_000
"""Tokens of each part."""
_LIMIT = 3.0
"""Seconds that one list may take."""
_PAGES = 20
"""Pages of a list of the first version."""
_HEAVY = ("properties", "metadata", "embedding", "provenance")


@dataclass(frozen=True)
class Part(Generic[Node]):
    nodes: tuple[Node, ...]
    links: tuple[ConstitutionLink, ...]
    tokens: int
    left_out: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    makeshift: bool = False
    """Whether it came by the first version of its list, for want of the second, and so is not worth keeping."""

    @property
    def parents(self) -> frozenset[str]:
        """Ids of the parents that are told."""
        return frozenset(one.id for node in self.nodes for one in getattr(node, "parents", None) or ())


class Parts:
    """Reads them from the graph."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def foundation(self, who: Principal) -> Part[ConstitutionNode]:
        """The foundation within its budget. Raises the `ServiceError` of the last try."""
        request = ListFoundation(exclude_fields=_HEAVY, include_relationships=True, status=Lifecycle.ACTIVE)
        try:
            found = await ask_twice(self._ask, who, LIST_FOUNDATION, request, _LIMIT)
        except ServiceError as error:
            return await self._first_version(who, Layer.FOUNDATION, ConstitutionNode, FOUNDATION, error)
        told = _by_list(Layer.FOUNDATION, found.truncated, found.next_cursor)
        return _part(LIST_FOUNDATION_TOOL.name, Layer.FOUNDATION, found.items, found.relationships, FOUNDATION, told)

    async def vision(self, who: Principal) -> Part[VisionNode]:
        """The vision with its parents within its budget. Raises the `ServiceError` of the last try."""
        request = ListVision(exclude_fields=(*_HEAVY, "description"), include_hierarchy=True, status=Lifecycle.ACTIVE)
        try:
            found = await ask_twice(self._ask, who, LIST_VISION, request, _LIMIT)
        except ServiceError as error:
            return await self._first_version(who, Layer.VISION, VisionNode, VISION, error)
        told = _by_list(Layer.VISION, found.truncated, found.next_cursor)
        return _part(LIST_VISION_TOOL.name, Layer.VISION, found.items, (), VISION, told)

    async def _first_version(
        self, who: Principal, layer: Layer, kind: type[Node], budget: int, error: ServiceError
    ) -> Part[Node]:
        """The nodes of a layer by the first version of its list, which tells no relationships."""
        log.warning("%s.list.v2 failed (%s); version 1 is asked", layer, error.code)
        tool, nodes, cursor = LISTS[layer], list[Node](), None
        for _ in range(_PAGES):
            page = await self._ask(who, tool.rpc, ListLayer(status=Lifecycle.ACTIVE, cursor=cursor), _LIMIT)
            nodes += [kind.model_validate(node.model_dump()) for node in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        else:
            raise Unavailable(f"the {layer} layer is more than {_PAGES} pages")
        whole = part_size(nodes, ())
        said = f"{layer}: version 1 of its list, without relationships, {whole} tokens before anything was left out"
        return replace(_part(tool.name, layer, nodes, (), budget, (), (said,)), makeshift=True)


def _by_list(layer: Layer, truncated: bool, cursor: str | None) -> tuple[str, ...]:
    fields = (f"{layer}: fields, by its list",) if truncated else ()
    return (*fields, f"{layer}: nodes beyond one answer of its list") if cursor else fields


def _part(
    tool: str,
    layer: Layer,
    nodes: tuple[Node, ...] | list[Node],
    links: tuple[ConstitutionLink, ...],
    budget: int,
    told: tuple[str, ...],
    warnings: tuple[str, ...] = (),
) -> Part[Node]:
    cut = trim(nodes, links, budget)
    log.info("%s: %d nodes, %d tokens", tool, len(cut.nodes), cut.tokens)
    if cut.tokens > budget:
        warnings = (*warnings, f"{layer}: over its budget of {budget} tokens with what names its nodes alone")
    return Part(cut.nodes, cut.links, cut.tokens, (*told, *(f"{layer}: {one}" for one in cut.left_out)), warnings)
