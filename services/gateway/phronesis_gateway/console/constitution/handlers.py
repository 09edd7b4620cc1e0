"""The routes of the graph's pages. Each calls the tools that an agent would call, for the person whom the cookie names."""

from __future__ import annotations

import asyncio
from typing import Annotated
from urllib.parse import parse_qs
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import RedirectResponse, Response

from phronesis_bus import Bus
from phronesis_contracts import BadRequest, NotFound, ServiceError
from phronesis_contracts.constitution.registry import TYPES, Layer, Lifecycle, NodeType
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH_TOOL
from phronesis_contracts.constitution.session import ASSESS_WORKLOAD_TOOL
from phronesis_contracts.constitution.writes import CREATE, RELATE_TOOL, UPDATE

from ...tools.offers import Offers
from .. import page
from ..session import Person, Sessions, html_response, problem_of, session_route
from . import pages
from .parts import PATH, page_address
from .tools import GraphTools

_FIELDS = 60
NodeId = Annotated[str, Path(max_length=200)]


def router(sessions: Sessions, bus: Bus, offers: Offers) -> APIRouter:
    asking = GraphTools(bus, offers)
    routes = APIRouter(route_class=session_route(sessions, page.problem_page))
    _reading_routes(routes, asking)
    _drawing_routes(routes, asking)
    _creation_routes(routes, asking)
    _change_routes(routes, asking)
    return routes


def _reading_routes(routes: APIRouter, asking: GraphTools) -> None:
    @routes.get(PATH)
    async def browse_layer(
        who: Person,
        layer: Layer = Layer.VISION,
        status: Lifecycle = Lifecycle.ACTIVE,
        cursor: Annotated[str | None, Query(max_length=1_500)] = None,
    ) -> Response:
        found, counted = await asyncio.gather(asking.layer(who, layer, status, cursor), asking.inventory(who))
        return html_response(pages.layer_page(who, layer, status, found, counted))

    @routes.get(PATH + "/search")
    async def search(who: Person, q: Annotated[str, Query(min_length=1, max_length=500)]) -> Response:
        found = await asking.tool(who, SEMANTIC_SEARCH_TOOL, {"query": q, "topK": 25, "minSimilarity": 0.2})
        return html_response(pages.search_page(who, q, found))

    @routes.get(PATH + "/nodes/{id}")
    async def open_node(id: NodeId, who: Person) -> Response:
        found, around = await asyncio.gather(asking.node(who, id), asking.around(who, [id], 1))
        ladder = await asking.ladder(who, id) if found.node.type == "goal" else None
        return html_response(pages.node_page(who, found.node, around, ladder))


def _drawing_routes(routes: APIRouter, asking: GraphTools) -> None:
    @routes.get(PATH + "/graph")
    async def draw(
        who: Person, id: Annotated[str | None, Query(max_length=200)] = None, depth: Annotated[int, Query(ge=1, le=2)] = 1
    ) -> Response:
        if id is None:
            return html_response(pages.graph_page(who, await asking.summit(who), None, depth))
        found, around = await asyncio.gather(asking.node(who, id), asking.around(who, [id], depth))
        return html_response(pages.graph_page(who, around, found.node, depth))

    @routes.get(PATH + "/workload")
    async def workload(who: Person) -> Response:
        found = await asking.tool(who, ASSESS_WORKLOAD_TOOL, {"includeTaskDetails": True})
        return html_response(pages.workload_page(who, found))


def _creation_routes(routes: APIRouter, asking: GraphTools) -> None:
    @routes.get(PATH + "/new")
    async def new_node(who: Person, type: Annotated[str, Query(max_length=64)]) -> Response:
        return html_response(pages.create_page(who, _node_type(type), uuid4().hex, {}, None))

    @routes.post(PATH + "/new")
    async def create_node(request: Request, who: Person) -> Response:
        filled = await _form_fields(request)
        kind, key = _node_type(filled.get("type", "")), filled.get("key", "")[:64] or uuid4().hex
        try:
            body = pages.read_form(kind, filled) | {"requestId": key}
            made = await asking.tool(who, CREATE[kind.name], body, key + _acknowledgement_suffix(filled))
        except ServiceError as error:
            _raise_unfixable(error)
            return html_response(pages.create_page(who, kind, key, filled, problem_of(error)), error.status)
        return RedirectResponse(page_address("nodes", made.node.id), 303)


def _change_routes(routes: APIRouter, asking: GraphTools) -> None:
    @routes.get(PATH + "/edit/{id}")
    async def edit_node(id: NodeId, who: Person) -> Response:
        node = (await asking.node(who, id)).node
        kind = _node_type(node.type)
        return html_response(pages.edit_page(who, kind, node, pages.form_values(kind, node), None))

    @routes.post(PATH + "/edit/{id}")
    async def change_node(id: NodeId, request: Request, who: Person) -> Response:
        filled, node = await _form_fields(request), (await asking.node(who, id)).node
        kind = _node_type(node.type)
        try:
            changed = pages.read_form(kind, filled, pages.form_values(kind, node))
            seen = filled.get("version", "")
            body = changed | {"id": id} | ({"version": int(seen)} if seen.isdigit() else {})
            await asking.tool(who, UPDATE[kind.name], body)
        except ServiceError as error:
            _raise_unfixable(error)
            return html_response(pages.edit_page(who, kind, node, filled, problem_of(error)), error.status)
        return RedirectResponse(page_address("nodes", id), 303)

    @routes.post(PATH + "/join/{id}")
    async def join_nodes(id: NodeId, request: Request, who: Person) -> Response:
        filled = await _form_fields(request)
        body = {"fromId": id, "toId": filled.get("to", ""), "type": filled.get("type", "")}
        try:
            await asking.tool(who, RELATE_TOOL, body)
        except ServiceError as error:
            _raise_unfixable(error)
            node = (await asking.node(who, id)).node
            kind = _node_type(node.type)
            return html_response(
                pages.edit_page(who, kind, node, pages.form_values(kind, node), problem_of(error)), error.status
            )
        return RedirectResponse(page_address("nodes", id), 303)


def _node_type(type: str) -> NodeType:
    found = TYPES.get(type)
    if found is None:
        raise NotFound("there is no such type of node")
    return found


def _raise_unfixable(error: ServiceError) -> None:
    if error.status not in (400, 404, 409):
        raise error


def _acknowledgement_suffix(filled: dict[str, str]) -> str:
    """What was acknowledged is part of the key: the same form, sent again with an acknowledgement, is another write."""
    named = filled.get("acknowledge", "").strip() or filled.get("override", "").strip()
    return f"/{named}"[:100] if named else ""


async def _form_fields(request: Request) -> dict[str, str]:
    body = (await request.body()).decode("utf-8", "replace")
    try:
        found = parse_qs(body, keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError as error:
        raise BadRequest("the form has too many fields") from error
    return {name: values[0] for name, values in found.items()}
