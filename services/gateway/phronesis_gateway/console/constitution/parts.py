"""Parts of the pages: tables of nodes and tasks, a ladder, and what a node is joined to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import htpy as h

from phronesis_contracts.constitution.paths import LadderClimbed, SubgraphFound
from phronesis_contracts.constitution.session import WorkloadAssessed
from phronesis_contracts.constitution.values import ConstitutionLink, ConstitutionNode, Mention

from .words import address, spaced, spaced_type


def tasks(found: WorkloadAssessed) -> h.Element:
    """The tasks that are due, or their sum."""
    if not found.tasks.items:
        return h.p[f"{found.tasks.total} tasks, {found.tasks.total_effort_hours:g} hours."]
    cells = ((each.due_date or "—", each, each.status, each.effort_hours) for each in found.tasks.items)
    return h.table(".rows")[
        h.thead[h.tr[(h.th(scope="col")[each] for each in ("Due", "Task", "Status", "Hours"))]],
        h.tbody[
            (
                h.tr[
                    h.td[due],
                    h.td[h.a(href=address("nodes", task.id))[task.title]],
                    h.td[status],
                    h.td(".number")["—" if hours is None else f"{hours:g}"],
                ]
                for due, task, status, hours in cells
            )
        ],
    ]


def rows_of(nodes: Iterable[ConstitutionNode], scores: list[str] | None = None) -> h.Element:
    """Nodes as a table, with their scores where there are some."""
    heads = ("Title", "Type", "Status", *(("Cosine",) if scores else ()))
    return h.table(".rows")[
        h.thead[h.tr[(h.th(scope="col")[each] for each in heads)]],
        h.tbody[
            (
                h.tr[
                    h.td[h.a(href=address("nodes", node.id))[node.title], h.span(".note")[node.summary or ""]],
                    h.td[spaced(node.type)],
                    h.td[node.status or ""],
                    h.td(".number")[scores[at]] if scores else None,
                ]
                for at, node in enumerate(nodes)
            )
        ],
    ]


def ladder_of(found: LadderClimbed | None) -> h.Element | None:
    """A goal's ladder, the goal first."""
    if found is None:
        return None
    return h.section(".ladder", aria_label="Ladder")[
        h.h2["What it serves"], h.ol[(h.li[mention(rung)] for rung in found.ladder)]
    ]


def mention(each: Mention) -> h.Fragment:
    """A link to a node."""
    return h.fragment[h.a(href=address("nodes", each.id))[each.title], h.span(".note")[f" {spaced(each.type)}"]]


def times(node: ConstitutionNode) -> h.Element | None:
    """When a node was made and changed."""
    if node.created_at is None or node.updated_at is None:
        return None
    return h.p(".note")[f"made {node.created_at:%d %b %Y}, changed {node.updated_at:%d %b %Y %H:%M}, version {node.version}"]


def neighbours(node: ConstitutionNode, around: SubgraphFound) -> h.Element:
    """What a node is joined to, by relationship, those that lead to it last."""
    by_id = {each.id: each for each in around.nodes}
    out = [(link, by_id.get(link.to_id)) for link in around.relationships if link.from_id == node.id]
    into = [(link, by_id.get(link.from_id)) for link in around.relationships if link.to_id == node.id]
    return h.section(".neighbours", aria_label="Neighbours")[
        h.h2["What it is joined to"],
        h.ul[_joined(out, "{}"), _joined(into, "← {}")] if out or into else h.p["Nothing joins it to another node yet."],
    ]


def _joined(found: list[tuple[ConstitutionLink, ConstitutionNode | None]], form: str) -> Iterator[h.Element]:
    for link, other in found:
        if other is not None:
            yield h.li[
                h.span(".mark")[form.format(spaced_type(link.type))],
                h.a(href=address("nodes", other.id))[other.title],
                h.span(".note")[f" {spaced(other.type)}"],
            ]
