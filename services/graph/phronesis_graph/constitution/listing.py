"""What the graph service does with lists page by page, and with nodes by id."""

from __future__ import annotations

from collections.abc import Sequence

from phronesis_bus import Call
from phronesis_contracts import NotFound, TooLarge
from phronesis_contracts.constitution.kinds import Layer, NodeType
from phronesis_contracts.constitution.lists import (
    GET_ALL_TOOL,
    LISTS,
    MOST,
    ConstitutionNodeFound,
    GetAll,
    GetConstitutionNode,
    GraphPage,
    LayerListed,
    ListLayer,
    NodesRead,
    ReadNodes,
    WalkNodes,
)
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode

from .cursors import cursor, place
from .list_measures import Listed
from .list_ports import Nodes, Wanted
from .pages import MOST_BYTES, Page, figures
from .records import node_of
from .telling import full, kinds_of, told

_AT_ONCE = 120
"""Nodes that are read at once: what an answer holds, of usual nodes."""
_LINKS_AT_ONCE = 300
_NODES, _LINKS = "all", "all.links"
_PLACES = {_NODES: 1, _LINKS: 2}


class Lists:
    """One method for each message. Everything is read in the caller's tenant."""

    def __init__(self, store: Nodes, listed: Listed) -> None:
        self._store = store
        self._listed = listed

    async def layer(self, layer: Layer, call: Call, request: ListLayer) -> LayerListed:
        """A page of a layer's nodes, whole, in the order of their ids.

        Raises:
            BadRequest: a type is not of the layer, or the cursor is none of this list.
        """
        with self._listed.call(LISTS[layer].name, request) as came:
            result = await self._layer(layer, call.who.tenant, request)
            came.stats = result.stats
        return result

    async def get_all(self, call: Call, request: GetAll) -> GraphPage:
        """A page of the graph: nodes in the order of their ids, then relationships by where they lead from.

        Raises:
            BadRequest: there is no such type, or the cursor is none of this list.
        """
        with self._listed.call(GET_ALL_TOOL.name, request) as came:
            result = await self._get_all(call.who.tenant, request)
            came.stats = result.stats
        return result

    async def node(self, call: Call, request: GetConstitutionNode) -> ConstitutionNodeFound:
        """One node in full, with its relationships if wanted: as many as fit into one answer.

        Raises:
            NotFound: there is none of that id.
        """
        rows = await self._store.read(call.who.tenant, (request.id,))
        if not rows:
            raise NotFound("there is no such node", field="id")
        page, whole = Page(MOST), node_of(rows[0])
        node = page.put(whole) or whole
        links: tuple[ConstitutionLink, ...] = ()
        if request.include_relationships:
            links = page.all(await self._store.around(call.who.tenant, request.id, MOST))
        return ConstitutionNodeFound(node=node, relationships=links, truncated=page.truncated)

    async def read_nodes(self, call: Call, request: ReadNodes) -> NodesRead:
        """Nodes by id, in full; an id that there is not is left out.

        Raises:
            TooLarge: they do not fit into one answer; ask for fewer.
        """
        nodes = tuple(node_of(row) for row in await self._store.read(call.who.tenant, tuple(dict.fromkeys(request.ids))))
        if sum(_size(node) for node in nodes) > MOST_BYTES:
            raise TooLarge("the texts of these nodes do not fit into one answer", field="ids")
        return NodesRead(nodes=nodes)

    async def walk_nodes(self, call: Call, request: WalkNodes) -> NodesRead:
        """The nodes behind an id, in full and in the order of ids: as many as fit, and at least one if there is one."""
        rows = await self._store.nodes(call.who.tenant, Wanted(), full(TYPES.values()), request.after, request.limit)
        nodes, size = list[ConstitutionNode](), 0
        for row in rows:
            node = node_of(row)
            size += _size(node)
            if nodes and size > MOST_BYTES:
                break
            nodes.append(node)
        return NodesRead(nodes=tuple(nodes))

    async def _layer(self, layer: Layer, tenant: str, request: ListLayer) -> LayerListed:
        after = place(request.cursor, {layer: 1})[1] if request.cursor else ""
        kinds = kinds_of(request.types, "types", layer)
        wanted = Wanted((layer,), _names(kinds) if request.types else (), request.status)
        page = Page(request.limit)
        nodes, last = await self._nodes(tenant, wanted, full(kinds), page, after)
        return LayerListed(
            items=tuple(nodes),
            stats=figures(nodes, page.tokens),
            next_cursor=cursor(layer, last) if last else None,
            truncated=page.truncated,
        )

    async def _get_all(self, tenant: str, request: GetAll) -> GraphPage:
        kind, *after = place(request.cursor, _PLACES) if request.cursor else (_NODES, "")
        kinds = kinds_of(request.types, "types")
        wanted = Wanted(request.layers, _names(kinds) if request.types else (), request.status)
        page, nodes, links = Page(request.limit), list[ConstitutionNode](), list[ConstitutionLink]()
        next_cursor = None
        if kind == _NODES:
            nodes, last = await self._nodes(tenant, wanted, told(kinds, request.exclude_fields), page, after[0])
            next_cursor, after = (cursor(_NODES, last) if last else None), ["", ""]
        if next_cursor is None:
            links, more = await self._links(tenant, wanted, page, (after[0], after[1]))
            next_cursor = cursor(_LINKS, *more) if more else None
        return GraphPage(
            nodes=tuple(nodes),
            relationships=tuple(links),
            stats=figures(nodes, page.tokens),
            next_cursor=next_cursor,
            truncated=page.truncated,
        )

    async def _nodes(
        self, tenant: str, wanted: Wanted, columns: Sequence[str], page: Page, after: str
    ) -> tuple[list[ConstitutionNode], str | None]:
        """The nodes behind `after` that fit on the page, and the id of the last of them where there are more."""
        nodes = list[ConstitutionNode]()
        while True:
            rows = await self._store.nodes(tenant, wanted, columns, after, _AT_ONCE)
            for row in rows:
                node = page.put(node_of(row))
                if node is None:
                    return nodes, after
                nodes.append(node)
                after = node.id
            if len(rows) < _AT_ONCE:
                return nodes, None

    async def _links(
        self, tenant: str, wanted: Wanted, page: Page, after: tuple[str, str]
    ) -> tuple[list[ConstitutionLink], tuple[str, str] | None]:
        """The same for relationships."""
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


def _names(kinds: Sequence[NodeType]) -> tuple[str, ...]:
    return tuple(kind.name for kind in kinds)


def _size(node: ConstitutionNode) -> int:
    return len(node.model_dump_json().encode())
