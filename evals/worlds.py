"""Worlds that tasks are done in: a tenant's graph, twin, documents and memories, from the files of one folder.

`world.yaml` has `asOf`, a day; `nodes` and `relationships` as `evals.constitution` has them, whose days move with `asOf` to
today; `notes`, texts by title, and `memories`, sentences: whoever hands in a task has them. `ontology.yaml` and `TYPE.csv` are
the twin. `tasks.yaml` is read by `evals.tasks`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from . import stack
from .client import Client
from .constitution import moved
from .items import SETS
from .truth import tables

FOLDER = SETS / "tasks"
Node = Mapping[str, Any]
Link = tuple[str, str, str]
_PAGE = 500
_STATUSES = ("active", "archived", "deprecated")
_VOLATILE = frozenset({"version", "createdAt", "updatedAt", "provenance", "layer"})
"""What the graph says of a node by itself."""
_OWN_DOCUMENT = "task/"
"""How the external ids of tasks' saved reports begin."""


@dataclass(frozen=True)
class State:
    """What a world holds at one moment.

    Args:
        nodes: of the graph, by id.
        links: of the graph, as source, type and target.
        twin: the rows of each type of the twin, as the stack lists them.
        memories: texts and notes of the person who asks, less the saved reports of tasks.
    """

    nodes: Mapping[str, Node]
    links: frozenset[Link]
    twin: Mapping[str, Sequence[Mapping[str, Any]]]
    memories: frozenset[str]


class World:
    """One world.

    Args:
        folder: its files.
        seed: 0 is the world as it is written; in any other the values of each property of the twin, and the links, belong to
            other rows of their table, so that no figure can be known from an earlier seed.
    """

    def __init__(self, folder: Path, seed: int = 0) -> None:
        told = yaml.safe_load((folder / "world.yaml").read_text("utf-8"))
        self.name, self.folder, self.seed = folder.name, folder, seed
        self.today = datetime.now(UTC).date()
        by = self.today - date.fromisoformat(str(told["asOf"]))
        self.nodes: list[dict[str, Any]] = [{key: moved(value, by) for key, value in node.items()} for node in told["nodes"]]
        self.links: list[Link] = [_link(line) for line in told["relationships"]]
        self.notes: dict[str, str] = dict(told.get("notes", {}))
        self.memories: list[str] = list(told.get("memories", ()))
        self.ontology_text = (folder / "ontology.yaml").read_text("utf-8")
        self.ontology = yaml.safe_load(self.ontology_text)
        self.files = {key: self._table((folder / f"{key}.csv").read_text("utf-8"), key) for key in self.ontology["nodes"]}
        self.rows = tables.read(self.ontology, self.files)

    def _table(self, text: str, key: str) -> str:
        """A table without its lines of comment, with its columns shuffled where the seed says so."""
        head, *lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        if not self.seed:
            return "\n".join([head, *lines]) + "\n"
        columns = [list(column) for column in zip(*(line.split(",") for line in lines), strict=True)]
        for name, column in zip(head.split(","), columns, strict=True):
            if name not in ("id", "name", "year"):
                random.Random(f"{self.seed}/{self.name}/{key}/{name}").shuffle(column)
        return "\n".join([head, *(",".join(row) for row in zip(*columns, strict=True))]) + "\n"

    @property
    def names(self) -> list[str]:
        """Every name of a node or row, and every id: their digits are no figures."""
        told = [str(node[key]) for node in self.nodes for key in ("title", "id")]
        return [*told, *(str(row[key]) for rows in self.rows.values() for row in rows for key in ("name", "id"))]

    def write(self, folder: Path) -> list[Path]:
        """The twin's files, as `phronesis load` takes them."""
        folder.mkdir(parents=True, exist_ok=True)
        made = {"ontology.yaml": self.ontology_text, **{f"{key}.csv": text for key, text in self.files.items()}}
        for name, text in made.items():
            (folder / name).write_text(text, "utf-8")
        return [folder / name for name in made]

    def load(self, where: stack.Stack, folder: Path) -> str:
        """Write it into a new tenant; the key of that tenant's administrator.

        Raises:
            StackError: the stack refused it.
        """
        key = stack.make_key(where, f"tasks-{self.name}-{uuid4().hex[:8]}")
        files = self.write(folder / f"{self.name}-{uuid4().hex[:8]}")
        stack.load(where, [*map(str, files), "--no-wait"], key)
        with Client(where.url, key) as client:
            links = [dict(zip(("fromId", "type", "toId"), link, strict=True)) for link in self.links]
            use(client, "constitution.load.v1", {"nodes": self.nodes, "relationships": links})
            ids = [node["id"] for node in self.nodes]
            for at in range(0, len(ids), 20):
                use(client, "embeddings.regenerate.v1", {"ids": ids[at : at + 20]})
        return key

    def equip(self, person: Client) -> None:
        """Give a new user the notes and memories that everybody in this world has."""
        notes = [{"text": text, "title": title, "kind": "note"} for title, text in self.notes.items()]
        items = [*notes, *({"text": text, "kind": "fact"} for text in self.memories)]
        if items:
            use(person, "remember", {"items": items})

    def mend(self, admin: Client, before: State, after: State) -> None:
        """Undo in the graph what happened between two states; whether it worked, the next state tells.

        Raises:
            StackError: it cannot be undone.
        """
        other = {id for id in set(before.nodes) & set(after.nodes) if before.nodes[id] != after.nodes[id]}
        for id in sorted({*set(after.nodes) - set(before.nodes), *other}):
            use(admin, "node.delete.v1", {"id": id})
        added = {link for link in after.links - before.links if {link[0], link[2]} <= set(before.nodes) - other}
        for one in (link for page in _pages(admin, "active") for link in page.get("relationships", ())) if added else ():
            if (one["fromId"], one["type"], one["toId"]) in added:
                use(admin, "relationship.delete.v1", {"id": one["id"]})
        gone = {*other, *(set(before.nodes) - set(after.nodes))}
        lost = before.links - after.links
        links = [link for link in self.links if link in lost or {link[0], link[2]} & gone]
        if gone or links:
            given = [dict(zip(("fromId", "type", "toId"), link, strict=True)) for link in links]
            nodes = [node for node in self.nodes if node["id"] in gone]
            use(admin, "constitution.load.v1", {"nodes": nodes, "relationships": given})

    def state(self, person: Client) -> State:
        """What the stack holds now, as this user sees it."""
        nodes, links = dict[str, Node](), set[Link]()
        for page in (page for status in _STATUSES for page in _pages(person, status)):
            nodes |= {node["id"]: {k: v for k, v in node.items() if k not in _VOLATILE} for node in page.get("nodes", ())}
            links |= {(link["fromId"], link["type"], link["toId"]) for link in page.get("relationships", ())}
        twin = {key: self._listed(person, key) for key in self.rows}
        kept = use(person, "memory.list", {"limit": 200, "kinds": ["fact", "note", "concept"]})["memories"]
        mine = frozenset(one["text"] for one in kept if not str(one.get("external_id") or "").startswith(_OWN_DOCUMENT))
        return State(nodes, frozenset(links), twin, mine)

    def _listed(self, person: Client, key: str) -> list[Mapping[str, Any]]:
        shown = list(self.ontology["nodes"][key]["properties"])[:12]
        return list(use(person, "survey_twin", {"type": key, "measure": "list", "show": shown, "limit": 500})["rows"])


def _pages(person: Client, status: str) -> Iterable[Mapping[str, Any]]:
    cursor = None
    while True:
        asked = {"limit": _PAGE, "excludeFields": ["embedding"], "status": status, **({"cursor": cursor} if cursor else {})}
        page = use(person, "graph.getAll.v1", asked)
        yield page
        cursor = page.get("nextCursor")
        if not cursor:
            return


def use(client: Client, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool answers. Raises `StackError`: it refused."""
    return client.call("POST", f"/api/v1/tools/{tool}", json=given)


def domains(folder: Path = FOLDER) -> list[str]:
    """The worlds of a folder, by name."""
    return sorted(one.parent.name for one in folder.glob("*/world.yaml"))


def week_end(today: date, weeks: int = 0) -> date:
    """The Sunday of this week, or of one of the next."""
    return today + timedelta(days=6 - today.weekday() + 7 * weeks)


def _link(line: Iterable[str]) -> Link:
    source, kind, target = str(line).split()
    return source, kind, target
