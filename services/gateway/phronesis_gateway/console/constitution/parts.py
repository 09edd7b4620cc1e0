"""Parts of the graph's pages.

How fields are named and where pages are, tables of nodes and tasks, a ladder, and what a node is joined to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, urlencode

import htpy as h

from phronesis_contracts import Principal
from phronesis_contracts.constitution.paths import LadderClimbed, SubgraphFound
from phronesis_contracts.constitution.registry import Layer
from phronesis_contracts.constitution.session import WorkloadAssessed
from phronesis_contracts.constitution.values import WRITERS, ConstitutionLink, ConstitutionNode, Mention

PATH = "/console/constitution"


def page_address(*parts: str, **query: str | None) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return "/".join((PATH, *(quote(part, safe="") for part in parts))) + (f"?{urlencode(given)}" if given else "")


def field_label(name: str) -> str:
    """`successCriteria` as people write it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def relationship_label(name: str) -> str:
    """`SUPPORTED_BY` as people write it."""
    return name.replace("_", " ").lower()


def may_write(who: Principal, layer: Layer) -> bool:
    """Whether somebody may change nodes of a layer."""
    return who.writes_as(WRITERS[layer])


def format_value(value: Any) -> str:
    match value:
        case None | "":
            return "—"
        case list() | tuple():
            return "; ".join(format_value(each) for each in value)
        case dict():
            return ", ".join(f"{field_label(str(name))}: {format_value(each)}" for name, each in value.items())
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def render_tasks(found: WorkloadAssessed) -> h.Element:
    if not found.tasks.items:
        return h.p[f"{found.tasks.total} tasks, {found.tasks.total_effort_hours:g} hours."]
    cells = ((each.due_date or "—", each, each.status, each.effort_hours) for each in found.tasks.items)
    return h.table(".rows")[
        h.thead[h.tr[(h.th(scope="col")[each] for each in ("Due", "Task", "Status", "Hours"))]],
        h.tbody[
            (
                h.tr[
                    h.td[due],
                    h.td[h.a(href=page_address("nodes", task.id))[task.title]],
                    h.td[status],
                    h.td(".number")["—" if hours is None else f"{hours:g}"],
                ]
                for due, task, status, hours in cells
            )
        ],
    ]


def render_nodes(nodes: Iterable[ConstitutionNode], scores: list[str] | None = None) -> h.Element:
    """Nodes as a table, with their scores where there are some."""
    heads = ("Title", "Type", "Status", *(("Cosine",) if scores else ()))
    return h.table(".rows")[
        h.thead[h.tr[(h.th(scope="col")[each] for each in heads)]],
        h.tbody[
            (
                h.tr[
                    h.td[h.a(href=page_address("nodes", node.id))[node.title], h.span(".note")[node.summary or ""]],
                    h.td[field_label(node.type)],
                    h.td[node.status or ""],
                    h.td(".number")[scores[at]] if scores else None,
                ]
                for at, node in enumerate(nodes)
            )
        ],
    ]


def render_ladder(found: LadderClimbed | None) -> h.Element | None:
    if found is None:
        return None
    return h.section(".ladder", aria_label="Ladder")[
        h.h2["What it serves"], h.ol[(h.li[render_mention(rung)] for rung in found.ladder)]
    ]


def render_mention(each: Mention) -> h.Fragment:
    return h.fragment[h.a(href=page_address("nodes", each.id))[each.title], h.span(".note")[f" {field_label(each.type)}"]]


def render_times(node: ConstitutionNode) -> h.Element | None:
    if node.created_at is None or node.updated_at is None:
        return None
    return h.p(".note")[f"made {node.created_at:%d %b %Y}, changed {node.updated_at:%d %b %Y %H:%M}, version {node.version}"]


def render_neighbours(node: ConstitutionNode, around: SubgraphFound) -> h.Element:
    """What a node is joined to, by relationship, those that lead to it last."""
    by_id = {each.id: each for each in around.nodes}
    out = [(link, by_id.get(link.to_id)) for link in around.relationships if link.from_id == node.id]
    into = [(link, by_id.get(link.from_id)) for link in around.relationships if link.to_id == node.id]
    return h.section(".neighbours", aria_label="Neighbours")[
        h.h2["What it is joined to"],
        h.ul[_render_links(out, "{}"), _render_links(into, "← {}")]
        if out or into
        else h.p["Nothing joins it to another node yet."],
    ]


def _render_links(found: list[tuple[ConstitutionLink, ConstitutionNode | None]], form: str) -> Iterator[h.Element]:
    for link, other in found:
        if other is not None:
            yield h.li[
                h.span(".mark")[form.format(relationship_label(link.type))],
                h.a(href=page_address("nodes", other.id))[other.title],
                h.span(".note")[f" {field_label(other.type)}"],
            ]
