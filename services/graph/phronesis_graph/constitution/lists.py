"""The handlers of lists, of nodes by id, and of the inventory, with what each list leaves in logs and metrics."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from phronesis_bus import Call, Kind, Metric, Metrics
from phronesis_bus.metrics import TOKENS
from phronesis_contracts import Message, NotFound, Nothing, TooLarge
from phronesis_contracts.constitution import lists
from phronesis_contracts.constitution.registry import RELATIONSHIPS, RETRIEVAL, TYPES, Layer, NodeType
from phronesis_contracts.constitution.values import MAX_TOKENS, ConstitutionLink, ConstitutionNode, ListStats

from .layers import AnswerCache, WholeLayers
from .pages import (
    MOST_BYTES,
    Page,
    find_kinds,
    full_columns,
    list_columns,
    list_stats,
    make_cursor,
    message_tokens,
    read_cursor,
)
from .ports import NodeFilter, NodePages, Survey
from .records import node_from_row

log = logging.getLogger(__name__)

LIST_SECONDS = Metric(
    "phronesis_constitution_list_seconds",
    Kind.HISTOGRAM,
    "Time of lists of the constitutional graph, those that were kept apart from those that were read.",
    ("tool", "cached"),
)
LIST_TOKENS = Metric(
    "phronesis_constitution_list_tokens", Kind.HISTOGRAM, "Tokens of lists of the constitutional graph.", ("tool",), TOKENS
)
LIST_NODES = Metric(
    "phronesis_constitution_list_nodes", Kind.HISTOGRAM, "Nodes of lists of the constitutional graph.", ("tool",), TOKENS
)


@dataclass
class ListOutcome:
    """What a list came to, as whoever makes it says."""

    stats: ListStats = field(default_factory=ListStats)
    cached: bool = False
    """Whether it was kept."""


class ListMeasures:
    """Enters lists in the log and the figures of a process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    @contextmanager
    def call(self, tool: str, question: Message) -> Iterator[ListOutcome]:
        """Enter what a block does for a question of a tool's: one line for each, whatever comes of it.

        The line has a digest of the question, so that repeats can be told, and nothing of what was asked or answered.
        """
        began, came, outcome = time.perf_counter(), ListOutcome(), "ok"
        try:
            yield came
        except BaseException as error:
            outcome = getattr(error, "code", None) or type(error).__name__
            raise
        finally:
            self._enter(tool, question, came, outcome, time.perf_counter() - began)

    def _enter(self, tool: str, question: Message, came: ListOutcome, outcome: str, seconds: float) -> None:
        if outcome == "ok":
            self._metrics.observe(LIST_SECONDS, seconds, tool, "yes" if came.cached else "no")
            self._metrics.observe(LIST_TOKENS, came.stats.token_estimate, tool)
            self._metrics.observe(LIST_NODES, came.stats.total_nodes, tool)
        fields = {
            "tool": tool,
            "arguments": hashlib.sha256(question.model_dump_json().encode()).hexdigest()[:16],
            "outcome": outcome,
            "tokens": came.stats.token_estimate,
            "nodes": came.stats.total_nodes,
            "cached": came.cached,
            "milliseconds": round(seconds * 1_000, 3),
        }
        log.info("a list was asked for", extra=fields)


_BAGS = 5_000
"""Bags of free properties that are looked through for names."""
_NAMES = 20
"""Names of undeclared properties that are told of a type."""
_LONGEST = 64
"""Characters that are told of one."""


class InventoryHandlers:
    def __init__(self, store: Survey) -> None:
        self._store = store

    async def inventory(self, call: Call, request: Nothing) -> lists.Inventory:
        """The layers, types, relationship types and indexes, with what the caller's tenant has of each.

        Names of undeclared properties come from the first 5,000 bags. Of relationship types that are not declared the
        rarest are left out where the answer would be too large, and before them those names.
        """
        counted = await self._store.counted(call.who.tenant, _BAGS)
        others = sorted(
            counted.relationships.keys() - RELATIONSHIPS.keys(), key=lambda name: (-counted.relationships[name], name)
        )
        whole = lists.Inventory(
            layers=tuple(Layer),
            retrieval={layer.value: how.value for layer, how in RETRIEVAL.items()},
            types=_count_types(counted.types, _undeclared_names(counted.bags)),
            relationship_types=_count_relationships(counted.relationships, others),
            indexes=tuple(await self._store.indexes()),
            total_nodes=sum(counted.types.values()),
            total_relationships=sum(counted.relationships.values()),
        )
        if message_tokens(whole) > MAX_TOKENS:
            whole = whole.model_copy(update={"types": _count_types(counted.types, {}), "truncated": True})
        while message_tokens(whole) > MAX_TOKENS:
            others = others[: len(others) // 2]
            whole = whole.model_copy(update={"relationship_types": _count_relationships(counted.relationships, others)})
        return whole


def _count_types(counts: Mapping[str, int], undeclared: Mapping[str, tuple[str, ...]]) -> tuple[lists.TypeCount, ...]:
    return tuple(
        lists.TypeCount(
            type=kind.name,
            label=kind.label,
            layer=kind.layer,
            tier=None if kind.tier is None else kind.tier.name,
            retrieval=RETRIEVAL[kind.layer].value,
            properties={one.name: one.kind.value for one in kind.properties},
            statuses=kind.statuses,
            count=counts.get(kind.name, 0),
            undeclared=undeclared.get(kind.name, ()),
        )
        for kind in TYPES.values()
    )


def _count_relationships(counts: Mapping[str, int], others: Iterable[str]) -> tuple[lists.RelationshipCount, ...]:
    declared = tuple(
        lists.RelationshipCount(
            type=name,
            declared=True,
            ends=tuple({"from": sorted(e.source), "to": sorted(e.target), "meaning": e.meaning} for e in kind.ends),
            count=counts.get(name, 0),
        )
        for name, kind in RELATIONSHIPS.items()
    )
    return declared + tuple(lists.RelationshipCount(type=name, declared=False, count=counts[name]) for name in others)


def _undeclared_names(bags: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    names: dict[str, set[str]] = {}
    for type, bag in bags:
        names.setdefault(type, set()).update(json.loads(bag))
    return {type: tuple(sorted(name[:_LONGEST] for name in found)[:_NAMES]) for type, found in names.items()}


class WholeLayerHandlers:
    """One method for each message. Answers are kept until a write touches them."""

    def __init__(self, whole: WholeLayers, kept: AnswerCache, listed: ListMeasures) -> None:
        self._whole, self._kept, self._listed = whole, kept, listed

    async def foundation(self, call: Call, request: lists.ListFoundation) -> lists.FoundationListed:
        """The foundation, by type and age, within `FOUNDATION_BUDGET`. Raises `BadRequest` (type, cursor), `TooLarge`."""
        tenant = call.who.tenant
        with self._listed.call(lists.LIST_FOUNDATION_TOOL.name, request) as came:
            result, came.cached = await self._kept.of(tenant, request, lambda: self._whole.foundation(tenant, request))
            came.stats = result.stats
        return result

    async def vision(self, call: Call, request: lists.ListVision) -> lists.VisionListed:
        """The vision with its parents, by type, horizon and age, within `VISION_BUDGET`; raises as `foundation` does."""
        tenant = call.who.tenant
        with self._listed.call(lists.LIST_VISION_TOOL.name, request) as came:
            result, came.cached = await self._kept.of(tenant, request, lambda: self._whole.vision(tenant, request))
            came.stats = result.stats
        return result


_AT_ONCE = 120
"""Nodes that are read at once: what an answer holds, of usual nodes."""
_LINKS_AT_ONCE = 300
_NODES, _LINKS = "all", "all.links"
_PLACES = {_NODES: 1, _LINKS: 2}


class ListHandlers:
    """One method for each message. Everything is read in the caller's tenant."""

    def __init__(self, store: NodePages, listed: ListMeasures) -> None:
        self._store, self._listed = store, listed

    async def layer(self, layer: Layer, call: Call, request: lists.ListLayer) -> lists.LayerListed:
        """A page of a layer's nodes, whole, in the order of their ids. Raises `BadRequest` (a type, or the cursor)."""
        with self._listed.call(lists.LISTS[layer].name, request) as came:
            result = await self._layer(layer, call.who.tenant, request)
            came.stats = result.stats
        return result

    async def get_all(self, call: Call, request: lists.GetAll) -> lists.GraphPage:
        """A page of the graph: nodes by id, then relationships by where they lead from. Raises `BadRequest` (type, cursor)."""
        with self._listed.call(lists.GET_ALL_TOOL.name, request) as came:
            result = await self._get_all(call.who.tenant, request)
            came.stats = result.stats
        return result

    async def node(self, call: Call, request: lists.GetConstitutionNode) -> lists.ConstitutionNodeFound:
        """One node in full, with its relationships if wanted: as many as fit into one answer. Raises `NotFound`."""
        rows = await self._store.read(call.who.tenant, (request.id,))
        if not rows:
            raise NotFound("there is no such node", field="id")
        page, whole = Page(lists.MOST), node_from_row(rows[0])
        node = page.put(whole) or whole
        links: tuple[ConstitutionLink, ...] = ()
        if request.include_relationships:
            links = page.all(await self._store.around(call.who.tenant, request.id, lists.MOST))
        return lists.ConstitutionNodeFound(node=node, relationships=links, truncated=page.truncated)

    async def read_nodes(self, call: Call, request: lists.ReadNodes) -> lists.NodesRead:
        """Nodes by id, in full, as many as there are. Raises `TooLarge`: they do not fit into one answer; ask for fewer."""
        nodes = tuple(node_from_row(row) for row in await self._store.read(call.who.tenant, tuple(dict.fromkeys(request.ids))))
        if sum(_byte_size(node) for node in nodes) > MOST_BYTES:
            raise TooLarge("the texts of these nodes do not fit into one answer", field="ids")
        return lists.NodesRead(nodes=nodes)

    async def walk_nodes(self, call: Call, request: lists.WalkNodes) -> lists.NodesRead:
        """The nodes behind an id, in full and in the order of ids: as many as fit, and at least one if there is one."""
        rows = await self._store.nodes(
            call.who.tenant, NodeFilter(), full_columns(TYPES.values()), request.after, request.limit
        )
        nodes, size = list[ConstitutionNode](), 0
        for row in rows:
            node = node_from_row(row)
            size += _byte_size(node)
            if nodes and size > MOST_BYTES:
                break
            nodes.append(node)
        return lists.NodesRead(nodes=tuple(nodes))

    async def _layer(self, layer: Layer, tenant: str, request: lists.ListLayer) -> lists.LayerListed:
        after = read_cursor(request.cursor, {layer: 1})[1] if request.cursor else ""
        kinds = find_kinds(request.types, "types", layer)
        wanted = NodeFilter((layer,), _type_names(kinds) if request.types else (), request.status)
        page = Page(request.limit)
        nodes, last = await self._nodes(tenant, wanted, full_columns(kinds), page, after)
        return lists.LayerListed(
            items=tuple(nodes),
            stats=list_stats(nodes, page.tokens),
            next_cursor=make_cursor(layer, last) if last else None,
            truncated=page.truncated,
        )

    async def _get_all(self, tenant: str, request: lists.GetAll) -> lists.GraphPage:
        kind, *after = read_cursor(request.cursor, _PLACES) if request.cursor else (_NODES, "")
        kinds = find_kinds(request.types, "types")
        wanted = NodeFilter(request.layers, _type_names(kinds) if request.types else (), request.status)
        page, nodes, links = Page(request.limit), list[ConstitutionNode](), list[ConstitutionLink]()
        next_cursor = None
        if kind == _NODES:
            nodes, last = await self._nodes(tenant, wanted, list_columns(kinds, request.exclude_fields), page, after[0])
            next_cursor, after = (make_cursor(_NODES, last) if last else None), ["", ""]
        if next_cursor is None:
            links, more = await self._links(tenant, wanted, page, (after[0], after[1]))
            next_cursor = make_cursor(_LINKS, *more) if more else None
        return lists.GraphPage(
            nodes=tuple(nodes),
            relationships=tuple(links),
            stats=list_stats(nodes, page.tokens),
            next_cursor=next_cursor,
            truncated=page.truncated,
        )

    async def _nodes(
        self, tenant: str, wanted: NodeFilter, columns: Sequence[str], page: Page, after: str
    ) -> tuple[list[ConstitutionNode], str | None]:
        nodes = list[ConstitutionNode]()
        while True:
            rows = await self._store.nodes(tenant, wanted, columns, after, _AT_ONCE)
            for row in rows:
                node = page.put(node_from_row(row))
                if node is None:
                    return nodes, after
                nodes.append(node)
                after = node.id
            if len(rows) < _AT_ONCE:
                return nodes, None

    async def _links(
        self, tenant: str, wanted: NodeFilter, page: Page, after: tuple[str, str]
    ) -> tuple[list[ConstitutionLink], tuple[str, str] | None]:
        links = list[ConstitutionLink]()
        while True:
            found = await self._store.links(tenant, wanted, after, _LINKS_AT_ONCE)
            for link in found:
                if not page.takes(link):
                    return links, after
                links.append(link)
                after = (link.from_id, link.id)
            if len(found) < _LINKS_AT_ONCE:
                return links, None


def _type_names(kinds: Sequence[NodeType]) -> tuple[str, ...]:
    return tuple(kind.name for kind in kinds)


def _byte_size(node: ConstitutionNode) -> int:
    return len(node.model_dump_json().encode())
