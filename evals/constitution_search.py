"""How well the constitutional graph is searched at shipped defaults: `python -m evals.constitution_search`.

A domain is a labelled graph, a file in `evals/sets/search`:

- `nodes`: each with `id`, `type`, `title` and fields of its type, which are given to the type's create tool as they stand;
- `links`: relationships, each `[from, type, to]`;
- `queries`: each with `text`, worded unlike the nodes, and `relevant`, the ids of all nodes that are a right answer;
- `nonsense`: questions that no node has to do with.

Sets named `tune-*` set the thresholds; all others are only measured. Each domain is loaded into a tenant of its own, embedded,
and asked without any floor, weight or anchor.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import yaml

from . import stack
from .client import Client

SETS = Path(__file__).parent / "sets" / "search"
TOOLS = ("semantic.search.v1", "hybrid.search.v1")
_CUT = 10
"""Results of a search where nothing else is said, and relevant nodes from which on precision is taken over so many."""


@dataclass(frozen=True)
class Domain:
    """A labelled graph."""

    name: str
    nodes: Sequence[dict[str, Any]]
    links: Sequence[Sequence[str]]
    queries: Sequence[dict[str, Any]]
    nonsense: Sequence[str]


@dataclass(frozen=True)
class Asked:
    """One question and the ids that came back, best first. `relevant`: empty for nonsense."""

    text: str
    relevant: frozenset[str]
    found: tuple[str, ...]


@dataclass(frozen=True)
class Figures:
    """Shares, from 0 to 1; `None` where no question counts for it."""

    questions: int
    precision_at_10: float | None
    r_precision: float | None
    irrelevant: float
    """Of all that was returned."""
    empty: int
    """Questions that returned nothing."""
    nonsense_empty: float | None


def read(path: Path) -> Domain:
    """A domain from its file. Raises `ValueError`: a label names no node."""
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    known = {node["id"] for node in given["nodes"]}
    for query in given["queries"]:
        if unknown := set(query["relevant"]) - known:
            raise ValueError(f"{path.name}: {query['text']!r} names {', '.join(sorted(unknown))}, which is no node")
    return Domain(path.stem, given["nodes"], given.get("links") or (), given["queries"], given["nonsense"])


def judge(asked: Iterable[Asked]) -> Figures:
    """The figures of some questions. Without ten relevant nodes, precision is over as many results as there are."""
    asked = list(asked)
    real, empty = [one for one in asked if one.relevant], [not one.found for one in asked if not one.relevant]
    many = [_precision(one, _CUT) for one in real if len(one.relevant) >= _CUT]
    few = [_precision(one, len(one.relevant)) for one in real if len(one.relevant) < _CUT]
    returned = sum(len(one.found) for one in real)
    right = sum(len(one.relevant & set(one.found)) for one in real)
    return Figures(
        len(asked),
        mean(many) if many else None,
        mean(few) if few else None,
        1 - right / returned if returned else 0.0,
        sum(not one.found for one in real),
        mean(empty) if empty else None,
    )


def _precision(one: Asked, cut: int) -> float:
    return len(one.relevant & set(one.found[:cut])) / cut


def ask(where: stack.Stack, domain: Domain) -> dict[str, list[Asked]]:
    """Load a domain into a new tenant, and ask everything, by tool.

    Raises:
        StackError: the stack refuses or fails.
    """
    key = stack.make_key(where, f"search-{uuid4().hex[:12]}")
    with Client(where.url, key) as client:
        # Guardrails last: they would be held against the nodes that come after them.
        for node in sorted(domain.nodes, key=lambda node: node["type"] == "guardrail"):
            fields = {name: value for name, value in node.items() if name != "type"}
            _call(client, f"{node['type']}.create.v1", fields)
        for source, type, target in domain.links:
            _call(client, "relationship.create.v1", {"fromId": source, "type": type, "toId": target})
        _call(client, "embeddings.regenerate.v1", {"ids": [node["id"] for node in domain.nodes]})
        return {tool: _asked(client, tool, domain) for tool in TOOLS}


def _asked(client: Client, tool: str, domain: Domain) -> list[Asked]:
    labelled = [(query["text"], frozenset(query["relevant"])) for query in domain.queries]
    found = []
    for text, relevant in [*labelled, *((text, frozenset[str]()) for text in domain.nonsense)]:
        answer = _call(client, tool, {"query": text})
        found.append(Asked(text, relevant, tuple(hit["node"]["id"] for hit in answer["results"])))
    return found


def _call(client: Client, tool: str, body: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = client.call("POST", f"/api/v1/tools/{tool}", json=body)
    return answer


def table(figures: dict[tuple[str, str], Figures]) -> str:
    """The figures as a table, by set and tool."""
    heads = ("set", "tool", "precision@10", "R-precision", "irrelevant", "empty answers", "nonsense empty")
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for (name, tool), one in figures.items():
        shares = (one.precision_at_10, one.r_precision, one.irrelevant, one.empty, one.nonsense_empty)
        cells = ("—" if share is None else str(share) if isinstance(share, int) else f"{share:.3f}" for share in shares)
        lines.append(f"| {name} | {tool} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure the sets that are named, or all; print a table, and each question that went wrong with `--wrong`."""
    parser = argparse.ArgumentParser(prog="python -m evals.constitution_search", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", help="names of sets, without .yaml; all where none is named")
    parser.add_argument("--url", help="address of a gateway; needs --key")
    parser.add_argument("--key", help="a key that may make keys")
    parser.add_argument("--data", type=Path, help="folder of a local stack")
    parser.add_argument("--own", action="store_true", help="start a stack for the run")
    parser.add_argument(
        "--wrong", action="store_true", help="print what came back for questions that were not answered rightly"
    )
    given = parser.parse_args()
    domains = [read(path) for path in sorted(SETS.glob("*.yaml")) if not given.sets or path.stem in given.sets]
    if given.own:
        with TemporaryDirectory() as folder, stack.running(Path(folder)) as where:
            _measure(where, domains, wrong=given.wrong)
    else:
        _measure(stack.find(given.url, given.key, given.data), domains, wrong=given.wrong)


def _measure(where: stack.Stack, domains: Sequence[Domain], *, wrong: bool) -> None:
    figures: dict[tuple[str, str], Figures] = {}
    everything: dict[str, list[Asked]] = {tool: [] for tool in TOOLS}
    for domain in domains:
        for tool, asked in ask(where, domain).items():
            figures[domain.name, tool] = judge(asked)
            everything[tool] += asked
            for one in asked if wrong else ():
                if set(one.found) != one.relevant:
                    print(json.dumps([domain.name, tool, one.text, sorted(one.relevant), one.found], ensure_ascii=False))
    figures |= {("all", tool): judge(asked) for tool, asked in everything.items()}
    print(table(figures))


if __name__ == "__main__":
    main()
