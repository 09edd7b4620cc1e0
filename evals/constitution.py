"""Ask the constitutional agents about graphs that they have not seen, judge by code, and report.

python -m evals.constitution --domain clinic                  the local stack; a tenant of its own is made and loaded
python -m evals.constitution --folder DIR --failures out.txt  domains of another folder, and each reply that was not right
python -m evals.constitution --agent mind                     every question asked as this agent

A domain is two files of a folder (`sets/constitution` by default):

`NAME.yaml` is the graph: `asOf`, a day; `nodes`, each with `id`, `type`, `title` and whatever its type takes, as
`constitution.load.v1` has it; `relationships`, lines of `FROM TYPE TO`. Days move with `asOf` to today when it is loaded.

`questions-*-NAME.yaml` is a list of items, each with `id`, `agent` (`discuss`, `decisions`, `execute` or `mind`), `text` and
`expect`, or with `turns`, a list of `text` and `expect` in one conversation. `expect` is a Python expression over the moved
graph, so that no truth is written by hand. It may use:

`nodes`, `of(*types, **fields)`, `layer(name)`, `node(id)`         nodes as mappings, those of archived status left out of `of`
`links`, `out(id, *types)`, `into(id, *types)`                      relationships as triples; nodes at their other ends
`today`, `day(value)`, `due(node)`, `week_end(weeks)`, `open_tasks()`  days; the Sunday of this week, or of one of the next
`exactly(nodes, loose=False)`  these nodes and no other of their types; with `loose` others may be told as well
`says(*ids)`                   every sentence of the nodes' statement, trigger, response and description, word for word
`number(value)`, `date(value)`, `yes(bool)`, `facts(*phrases)`, `groups(mapping)`, `matches(pattern)`, `declined(*not_said)`,
`any_of(*expectations)`, `count_by(nodes, field)`                   as `judge.KINDS` has them
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from . import report, stack
from .client import Client, StackError
from .items import SETS, Item, parse
from .judge import RIGHT
from .run import Record, converse

FOLDER = SETS / "constitution"
_DAY = re.compile(r"^\d{4}-\d{2}-\d{2}(?=$|T)")
LAYERS = {
    "foundation": ("value", "principle", "guardrail", "human", "ai", "policy", "context"),
    "vision": ("vision", "business", "goal", "season"),
    "strategy": ("strategy", "objective", "keyResult", "initiative", "milestone", "risk"),
    "tactics": ("project", "area", "system", "process"),
    "execution": ("decision", "task", "timeBlock", "workSession", "action"),
    "track": ("metric", "observation", "event", "signal"),
    "mind": ("insight", "pattern", "evidence", "source", "note"),
}
"""Types by layer, stated here because an examiner imports nothing of what it examines."""
_TEXTS = ("statement", "trigger", "response", "description")
_ENOUGH = 40
"""Characters of a sentence that have to stand in a reply; a longer one may be cut behind them."""
Node = Mapping[str, Any]


class Domain:
    """One graph with its days moved to today, and the questions about it."""

    def __init__(self, folder: Path, name: str) -> None:
        told = yaml.safe_load((folder / f"{name}.yaml").read_text("utf-8"))
        self.name = name
        self.today = datetime.now(UTC).date()
        by = self.today - date.fromisoformat(str(told["asOf"]))
        self.nodes: list[dict[str, Any]] = [{key: moved(value, by) for key, value in node.items()} for node in told["nodes"]]
        self.links = [tuple(str(line).split()) for line in told["relationships"]]
        self._by_id = {node["id"]: node for node in self.nodes}
        files = sorted(folder.glob(f"questions-*-{name}.yaml"))
        raw = [one for file in files for one in yaml.safe_load(file.read_text("utf-8"))]
        words = self.vocabulary()
        self.items = [
            parse({**one, "agents": [one["agent"]], "tags": one.get("tags", ())}, f"constitution-{name}", words, "tune")
            for one in raw
        ]
        for item in self.items:
            for turn in item.turns:
                self._spare_subjects(turn.expect, " ".join(each.text for each in item.turns))

    @staticmethod
    def _spare_subjects(expect: Mapping[str, Any], asked: str) -> None:
        """A reply may name what it was asked about: titles that share two words, or half of theirs, with the question."""
        said = set(re.findall(r"\w{4,}", asked.casefold()))
        for title in list(expect.get("not", ())):
            words = set(re.findall(r"\w{4,}", str(title).casefold()))
            if len(words & said) >= min(2, (len(words) + 1) // 2):
                expect["not"].remove(title)

    @property
    def names(self) -> list[str]:
        """Titles and ids, whose digits are no figures."""
        return [str(node[key]) for node in self.nodes for key in ("title", "id")]

    def load(self, client: Client) -> None:
        """Write it into the client's tenant, and have its nodes embedded. Raises `StackError`: it was refused."""
        links = [dict(zip(("fromId", "type", "toId"), link, strict=True)) for link in self.links]
        _use(client, "constitution.load.v1", {"nodes": self.nodes, "relationships": links})
        ids = [node["id"] for node in self.nodes]
        for at in range(0, len(ids), 20):
            _use(client, "embeddings.regenerate.v1", {"ids": ids[at : at + 20]})

    def vocabulary(self) -> dict[str, Any]:
        """What expressions may use (see the module)."""
        own = {name: getattr(self, name) for name in ("nodes", "links", "today", "of", "layer", "node", "out", "into")}
        own |= {name: getattr(self, name) for name in ("week_end", "open_tasks", "exactly", "says")}
        return own | {
            "day": _day,
            "due": due,
            "count_by": count_by,
            "number": lambda value: {"number": value},
            "date": lambda value: {"date": str(value)[:10]},
            "yes": lambda value, *phrases: {"yes": value, **({"facts": list(phrases)} if phrases else {})},
            "facts": lambda *phrases: {"text": list(phrases)},
            "groups": lambda groups: {"groups": dict(groups)},
            "matches": lambda pattern: {"matches": pattern},
            "declined": lambda *unsaid: {"declined": True, "not": list(unsaid), "or_ask": True},
            "any_of": lambda *expected: {"any": list(expected)},
        }

    def of(self, *types: str, **fields: Any) -> list[Node]:
        """Nodes of some types with these fields; archived and deprecated ones only where `status` says so."""
        return [
            node
            for node in self.nodes
            if node["type"] in types
            and ("status" in fields or node.get("status") not in ("archived", "deprecated"))
            and all(node.get(name) == value for name, value in fields.items())
        ]

    def layer(self, name: str) -> list[Node]:
        """Nodes of a layer."""
        return self.of(*LAYERS[name])

    def node(self, id: str) -> Node:
        """The node of an id."""
        return self._by_id[id]

    def out(self, id: str, *types: str) -> list[Node]:
        """Nodes that relationships of these types lead to from a node; of all types where none is named."""
        return [self._by_id[end] for start, kind, end in self.links if start == id and (not types or kind in types)]

    def into(self, id: str, *types: str) -> list[Node]:
        """Nodes that such relationships lead from."""
        return [self._by_id[start] for start, kind, end in self.links if end == id and (not types or kind in types)]

    def week_end(self, weeks: int = 0) -> date:
        """The Sunday of this week, or of one of the next."""
        return self.today + timedelta(days=6 - self.today.weekday() + 7 * weeks)

    def open_tasks(self) -> list[Node]:
        """Tasks that are neither done nor put away."""
        return [node for node in self.of("task") if node.get("status", "todo") in ("todo", "in_progress")]

    def exactly(self, nodes: Iterable[Node], *, loose: bool = False) -> dict[str, Any]:
        """Their titles, and none of the other titles of their types."""
        wanted = list(nodes)
        types = {node["type"] for node in wanted}
        others = [node["title"] for node in self.nodes if node["type"] in types and node not in wanted]
        return {"names": [node["title"] for node in wanted], "not": [] if loose else others}

    def says(self, *ids: str) -> dict[str, Any]:
        """What the nodes say, word for word."""
        told = [str(self._by_id[id][name]) for id in ids for name in _TEXTS if name in self._by_id[id]]
        return {"text": [f"~{sentence[:_ENOUGH]}" for text in told for sentence in text.rstrip(".").split(". ")]}


def _use(client: Client, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    return client.call("POST", f"/api/v1/tools/{tool}", json=given)


def moved(value: Any, by: timedelta) -> Any:
    if isinstance(value, date):
        return (value + by).isoformat()
    if isinstance(value, dict):
        return {key: moved(member, by) for key, member in value.items()}
    if isinstance(value, str) and (found := _DAY.match(value)):
        return (date.fromisoformat(found[0]) + by).isoformat() + value[found.end() :]
    return value


def _day(value: Any) -> date:
    return date.fromisoformat(str(value)[:10])


def due(node: Node) -> date | None:
    """The day that a node is due, if it has one."""
    found = node.get("dueDate") or node.get("deadline")
    return _day(found) if found else None


def count_by(nodes: Iterable[Node], field: str) -> dict[str, int]:
    """How many nodes have each value of a field."""
    return dict(Counter(str(node[field]) for node in nodes if field in node))


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module; the exit status: 0 if everything ran, whatever the answers were."""
    parser = argparse.ArgumentParser(prog="python -m evals.constitution")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the domains are")
    parser.add_argument("--domain", action="append", help="a domain; may be given again; all of the folder by default")
    parser.add_argument("--agent", choices=("discuss", "decisions", "execute", "mind"), help="ask every question as this agent")
    parser.add_argument("--id", action="append", help="only this item; may be given again")
    parser.add_argument("--url", help="address of a gateway; the local stack's by default")
    parser.add_argument("--key", help="an admin's key of it")
    parser.add_argument("--data", type=Path, help="data directory of a local stack; ~/.phronesis by default")
    parser.add_argument("--failures", type=Path, help="file for the replies that were not right")
    parser.add_argument("--workers", type=int, default=2, help="conversations at a time (2)")
    given = parser.parse_args(arguments)
    names = given.domain or sorted(
        {file.stem for file in given.folder.glob("*.yaml") if not file.stem.startswith("questions-")}
    )
    try:
        where = stack.find(given.url, given.key, given.data)
        records = [record for name in names for record in _run(Domain(given.folder, name), where, given)]
    except (StackError, OSError) as exc:
        print(exc, file=sys.stderr)
        return 1
    print(report.summary(records))
    if given.failures:
        given.failures.write_text("\n".join(_told(record) for record in records if record.outcome != RIGHT), "utf-8")
    return 0


def _run(domain: Domain, where: stack.Stack, given: argparse.Namespace) -> list[Record]:
    key = stack.make_key(where, f"eval-{domain.name}-{uuid4().hex[:8]}")
    items = [item for item in domain.items if not given.id or item.id in given.id]
    with Client(where.url, key) as client, ThreadPoolExecutor(given.workers) as pool:
        domain.load(client)
        return [record for some in pool.map(partial(_ask_as, client, given.agent, domain.names), items) for record in some]


def _ask_as(client: Client, agent: str | None, names: Sequence[str], item: Item) -> list[Record]:
    asked = agent or item.agents[0]
    return converse(client, item, asked, names, role=asked)


def _told(record: Record) -> str:
    turn = record.item.turns[record.turn]
    head = f"## {record.item.id}.{record.turn} {record.agent} {record.outcome}: {turn.text}\n   {dict(turn.expect)}"
    return f"{head}\n{record.reply.text}\n"


if __name__ == "__main__":
    sys.exit(main())
