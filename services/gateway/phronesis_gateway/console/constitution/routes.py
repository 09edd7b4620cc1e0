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
from phronesis_contracts.constitution.kinds import Layer, Lifecycle, NodeType
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.search import SEMANTIC_SEARCH_TOOL
from phronesis_contracts.constitution.session import ASSESS_WORKLOAD_TOOL
from phronesis_contracts.constitution.writes import CREATE, RELATE_TOOL, UPDATE
from phronesis_gateway.console import page
from phronesis_gateway.console.entrance import Person, as_html, entered, problem_of
from phronesis_gateway.console.session import Sessions
from phronesis_gateway.offers import Offers

from . import forms, pages
from .asking import Asking
from .words import PATH, address

_FIELDS = 60
NodeId = Annotated[str, Path(max_length=200)]


def router(sessions: Sessions, bus: Bus, offers: Offers) -> APIRouter:
    """The routes.

    Args:
        sessions: tells who is signed in.
        bus: the connected bus.
        offers: what each caller may call.
    """
    asking = Asking(bus, offers)
    routes = APIRouter(route_class=entered(sessions, page.problem))
    _reading(routes, asking)
    _drawing(routes, asking)
    _creating(routes, asking)
    _changing(routes, asking)
    return routes


def _reading(routes: APIRouter, asking: Asking) -> None:
    @routes.get(PATH)
    async def browse_layer(
        who: Person,
        layer: Layer = Layer.VISION,
        status: Lifecycle = Lifecycle.ACTIVE,
        cursor: Annotated[str | None, Query(max_length=1_500)] = None,
    ) -> Response:
        found, counted = await asyncio.gather(asking.layer(who, layer, status, cursor), asking.inventory(who))
        return as_html(pages.layer_page(who, layer, status, found, counted))

    @routes.get(PATH + "/search")
    async def search(who: Person, q: Annotated[str, Query(min_length=1, max_length=500)]) -> Response:
        found = await asking.tool(who, SEMANTIC_SEARCH_TOOL, {"query": q, "topK": 25, "minSimilarity": 0.2})
        return as_html(pages.search_page(who, q, found))

    @routes.get(PATH + "/nodes/{id}")
    async def open_node(id: NodeId, who: Person) -> Response:
        found, around = await asyncio.gather(asking.node(who, id), asking.around(who, [id], 1))
        ladder = await asking.ladder(who, id) if found.node.type == "goal" else None
        return as_html(pages.node_page(who, found.node, around, ladder))


def _drawing(routes: APIRouter, asking: Asking) -> None:
    @routes.get(PATH + "/graph")
    async def draw(
        who: Person,
        id: Annotated[str | None, Query(max_length=200)] = None,
        depth: Annotated[int, Query(ge=1, le=2)] = 1,
    ) -> Response:
        if id is None:
            return as_html(pages.graph_page(who, await asking.summit(who), None, depth))
        found, around = await asyncio.gather(asking.node(who, id), asking.around(who, [id], depth))
        return as_html(pages.graph_page(who, around, found.node, depth))

    @routes.get(PATH + "/workload")
    async def workload(who: Person) -> Response:
        found = await asking.tool(who, ASSESS_WORKLOAD_TOOL, {"includeTaskDetails": True})
        return as_html(pages.workload_page(who, found))


def _creating(routes: APIRouter, asking: Asking) -> None:
    @routes.get(PATH + "/new")
    async def new_node(who: Person, type: Annotated[str, Query(max_length=64)]) -> Response:
        return as_html(forms.create_page(who, _kind(type), uuid4().hex, {}, None))

    @routes.post(PATH + "/new")
    async def create_node(request: Request, who: Person) -> Response:
        filled = await _filled(request)
        kind, key = _kind(filled.get("type", "")), filled.get("key", "")[:64] or uuid4().hex
        try:
            body = forms.given(kind, filled) | {"requestId": key}
            made = await asking.tool(who, CREATE[kind.name], body, key + _way(filled))
        except ServiceError as error:
            _passed_on(error)
            return as_html(forms.create_page(who, kind, key, filled, problem_of(error)), error.status)
        return RedirectResponse(address("nodes", made.node.id), 303)


def _changing(routes: APIRouter, asking: Asking) -> None:
    @routes.get(PATH + "/edit/{id}")
    async def edit_node(id: NodeId, who: Person) -> Response:
        node = (await asking.node(who, id)).node
        kind = _kind(node.type)
        return as_html(forms.edit_page(who, kind, node, forms.filled_from(kind, node), None))

    @routes.post(PATH + "/edit/{id}")
    async def change_node(id: NodeId, request: Request, who: Person) -> Response:
        filled, node = await _filled(request), (await asking.node(who, id)).node
        kind = _kind(node.type)
        try:
            changed = forms.given(kind, filled, forms.filled_from(kind, node))
            seen = filled.get("version", "")
            body = changed | {"id": id} | ({"version": int(seen)} if seen.isdigit() else {})
            await asking.tool(who, UPDATE[kind.name], body)
        except ServiceError as error:
            _passed_on(error)
            return as_html(forms.edit_page(who, kind, node, filled, problem_of(error)), error.status)
        return RedirectResponse(address("nodes", id), 303)

    @routes.post(PATH + "/join/{id}")
    async def join_nodes(id: NodeId, request: Request, who: Person) -> Response:
        filled = await _filled(request)
        body = {"fromId": id, "toId": filled.get("to", ""), "type": filled.get("type", "")}
        try:
            await asking.tool(who, RELATE_TOOL, body)
        except ServiceError as error:
            _passed_on(error)
            node = (await asking.node(who, id)).node
            kind = _kind(node.type)
            return as_html(forms.edit_page(who, kind, node, forms.filled_from(kind, node), problem_of(error)), error.status)
        return RedirectResponse(address("nodes", id), 303)


def _kind(type: str) -> NodeType:
    found = TYPES.get(type)
    if found is None:
        raise NotFound("there is no such type of node")
    return found


def _passed_on(error: ServiceError) -> None:
    """Raise what a form cannot put right."""
    if error.status not in (400, 404, 409):
        raise error


def _way(filled: dict[str, str]) -> str:
    """What was acknowledged is part of the key: the same form, sent again with an acknowledgement, is another write."""
    named = filled.get("acknowledge", "").strip()
    return f"/{named}"[:100] if named else ""


async def _filled(request: Request) -> dict[str, str]:
    """A form's fields."""
    body = (await request.body()).decode("utf-8", "replace")
    try:
        found = parse_qs(body, keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError as error:
        raise BadRequest("the form has too many fields") from error
    return {name: values[0] for name, values in found.items()}
