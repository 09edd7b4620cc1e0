"""A twin in memory: surveys, chains, gaps and names over nodes that are given. It shares no code with the graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from phronesis_contracts import Principal
from phronesis_contracts.memory import RECALL, ItemKind, Recall, Recalled, RecalledItem
from phronesis_contracts.twin import (
    DIAGNOSE_GAPS,
    FIND_ENTITIES,
    RUN_CHAIN,
    SURVEY,
    ChainNode,
    ChainPath,
    ChainRun,
    Diagnosed,
    DiagnoseGaps,
    Entities,
    Entity,
    FindEntities,
    Gap,
    GapType,
    GroupBy,
    RunChain,
    Survey,
    Surveyed,
    Upsert,
    UpsertNode,
    Where,
)

_FILE = Path(__file__).resolve().parents[2] / "services/graph/phronesis_graph/content/transformation_twin.yaml"
CHAINS: dict[str, list[list[str]]] = {
    name: [[part.strip() for part in step.split("|")] for step in steps]
    for name, steps in yaml.safe_load(_FILE.read_text(encoding="utf-8"))["chains"].items()
}
"""The ontology's chains: node types and relationships in turn, each with its alternatives."""


@dataclass
class MemoryTwin:
    """Nodes and relationships of one tenant."""

    nodes: dict[str, UpsertNode] = field(default_factory=dict)
    joined: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    """By key and relationship type, the keys at the other end, whatever the direction."""
    asked: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, batches: Iterable[Upsert]) -> MemoryTwin:
        """A twin of what was to be written."""
        twin = cls()
        for batch in batches:
            twin.nodes |= {node.key: node for node in batch.nodes}
            for one in batch.relationships:
                twin.joined[one.source.key, one.type].append(one.target.key)
                twin.joined[one.target.key, one.type].append(one.source.key)
        return twin

    async def ask(self, who: Principal, rpc: Any, request: Any) -> Any:
        """Answer by contract."""
        self.asked.append(request)
        answers = {
            SURVEY.subject: self.survey,
            RUN_CHAIN.subject: self.chain,
            DIAGNOSE_GAPS.subject: self.gaps,
            FIND_ENTITIES.subject: self.entities,
            RECALL.subject: self.recalled,
        }
        return answers[rpc.subject](rpc.input.model_validate(request.model_dump()))

    def survey(self, request: Survey) -> Surveyed:
        fitting = [node for node in self.nodes.values() if self._fits(node, request)]
        if request.measure == "list":
            return self._listed(fitting, request)
        groups: dict[tuple[Any, ...], dict[str, UpsertNode]] = defaultdict(dict)
        for node in fitting:
            for key in self._groups(node, request.group_by):
                groups[key][node.key] = node
        if not request.group_by:
            groups.setdefault((), {})
        rows = [self._row(key, list(found.values()), request) for key, found in groups.items()]
        rows.sort(key=lambda row: [(row.get(name) is None, str(row.get(name))) for name in ("group", "group2")])
        return Surveyed(rows=tuple(rows[: request.limit]), total=len(fitting), statement=f"survey of {request.type}")

    def _fits(self, node: UpsertNode, request: Survey) -> bool:
        return (
            node.type == request.type
            and (not request.years or node.year in request.years)
            and (request.level is None or node.level == request.level)
            and all(self._meets(node, where) for where in request.where)
        )

    def _meets(self, node: UpsertNode, where: Where) -> bool:
        nodes = list(self._linked(node, where.via, where.to)) if where.via else [node]
        if where.op == "unknown":
            return all(_property(one, where.property) is None for one in nodes)
        return any(_compares(_property(one, where.property), where) for one in nodes)

    def _linked(self, node: UpsertNode, via: str, to: str | None) -> Iterator[UpsertNode]:
        for key in self.joined.get((node.key, via), ()):
            if self.nodes[key].type == to:
                yield self.nodes[key]

    def _groups(self, node: UpsertNode, by: tuple[GroupBy, ...]) -> list[tuple[Any, ...]]:
        keys: list[tuple[Any, ...]] = [()]
        for one in by:
            nodes = list(self._linked(node, one.via, one.to)) if one.via else [node]
            values = {_property(other, one.property) for other in nodes} or {None}
            keys = [(*key, value) for key in keys for value in values]
        return keys

    def _row(self, key: tuple[Any, ...], nodes: list[UpsertNode], request: Survey) -> dict[str, Any]:
        row = dict(zip(("group", "group2"), key, strict=False))
        if request.measure == "count":
            known = len(nodes) if None not in key else 0
            return {**row, "value": len(nodes), "known": known, "unknown": len(nodes) - known}
        values = [float(value) for node in nodes if (value := node.properties.get(request.of or "")) is not None]  # type: ignore[arg-type]
        how = {"sum": sum, "avg": lambda given: sum(given) / len(given), "min": min, "max": max}[request.measure]
        value = how(values) if values else None
        return {**row, "value": value, "known": len(values), "unknown": len(nodes) - len(values)}

    def _listed(self, fitting: list[UpsertNode], request: Survey) -> Surveyed:
        ordered = sorted(fitting, key=lambda node: (node.id, node.year))
        keys = [f"{node.id}/{node.year}" for node in ordered]
        start = keys.index(request.after) + 1 if request.after else 0
        page = ordered[start : start + request.limit]
        rows = [
            {"id": node.id, "name": node.name, "year": node.year} | {name: _property(node, name) for name in request.show}
            for node in page
        ]
        more = start + request.limit < len(ordered)
        return Surveyed(
            rows=tuple(rows), total=len(fitting), next=keys[start + request.limit - 1] if more else None, statement="list"
        )

    def entities(self, request: FindEntities) -> Entities:
        text = " ".join(request.text.casefold().split())
        words = [word for word in "".join(c if c.isalnum() else " " for c in text).split() if len(word) > 2]
        found: dict[tuple[str, str], list[UpsertNode]] = defaultdict(list)
        for node in self.nodes.values():
            name = node.name.casefold()
            if (not request.types or node.type in request.types) and (
                text in name or (words and all(word in name for word in words)) or name in text or text == node.id.casefold()
            ):
                found[node.type, node.id].append(node)
        entities = [_entity(text, nodes) for nodes in found.values()]
        entities.sort(key=lambda entity: (-entity.score, entity.name, entity.id))
        return Entities(entities=tuple(entities[: request.limit]))

    def chain(self, request: RunChain) -> ChainRun:
        steps = _steps(request.chain, request.start_type)
        starts = [
            node
            for node in self.nodes.values()
            if node.type in steps[0] and node.year == request.year and request.start in (None, node.id)
        ]
        walks = [walk for start in starts for walk in self._walks([start], [], steps[1:], request)]
        paths = [
            ChainPath(
                nodes=tuple(ChainNode(type=node.type, id=node.id, name=node.name) for node in nodes),
                relationships=tuple(names),
                whole=len(nodes) == len(steps[::2]),
            )
            for nodes, names in walks
        ]
        ordered = sorted(paths, key=lambda path: -len(path.nodes))
        return ChainRun(paths=tuple(ordered[: request.limit]), statement=f"walk {request.chain}")

    def _walks(
        self, nodes: list[UpsertNode], names: list[str], steps: list[list[str]], request: RunChain
    ) -> Iterator[tuple[list[UpsertNode], list[str]]]:
        nexts = [
            (name, node)
            for name in (steps[0] if steps else ())
            for type in steps[1]
            for node in self._linked(nodes[-1], name, type)
            if node.level == request.level
        ]
        if not nexts:
            yield nodes, names
        for name, node in nexts:
            yield from self._walks([*nodes, node], [*names, name], steps[2:], request)

    def gaps(self, request: DiagnoseGaps) -> Diagnosed:
        found = [gap for question in request.questions if (gap := self._gap(question)) is not None]
        return Diagnosed(gaps=tuple(found), asked=len(request.questions))

    def _gap(self, question: Any) -> Gap | None:
        year = question.node.year
        common = {"question": question.id, "year": year, "level": question.level, "because": "it is there in another year"}
        if question.node.key not in self.nodes:
            return Gap(type=GapType.TEMPORAL, missing_step=question.node.key, **common)
        if question.chain is None:
            return None
        of = {"start": question.node.id, "start_type": question.node.type, "limit": 500}
        run = self.chain(RunChain(chain=question.chain, year=year, level=question.level, **of))
        if any(path.whole for path in run.paths):
            return None
        path = max(run.paths, key=lambda path: len(path.nodes))
        steps = _steps(question.chain, question.node.type)
        at = 2 * len(path.nodes) - 1
        last = path.nodes[-1]
        return Gap(
            type=GapType.CHAIN,
            chain=question.chain,
            last_node=f"{last.type}/{last.id}/{year}",
            missing_step=f"{' | '.join(steps[at])} -> {' | '.join(steps[at + 1])}",
            **common,
        )

    def recalled(self, request: Recall) -> Recalled:
        """The nodes that share most words with the question: near in meaning, as far as words go."""
        wanted = set(request.query.casefold().split())
        scored = [(len(wanted & set(_text(node).split())), node) for node in self.nodes.values() if node.properties.get("aims")]
        best = sorted((one for one in scored if one[0]), key=lambda one: (-one[0], one[1].key))[: request.limit]
        items = [
            RecalledItem(
                id=node.key, external_id=node.key, kind=ItemKind.NODE, title=node.name, text=_text(node), score=0.5, why={}
            )
            for _, node in best
        ]
        return Recalled(items=tuple(items))


def _steps(chain: str, type: str | None) -> list[list[str]]:
    """The steps of a chain from the first that has nodes of the type."""
    steps = CHAINS[chain]
    at = next((n for n in range(0, len(steps), 2) if type in steps[n]), 0) if type else 0
    return [[type], *steps[at + 1 :]] if type else steps


def _property(node: UpsertNode, name: str) -> Any:
    if name in ("id", "name", "year"):
        return getattr(node, name)
    return node.level.value if name == "level" else node.properties.get(name)


def _compares(value: Any, where: Where) -> bool:
    if value is None:
        return False
    wanted: Any = where.value
    match where.op:
        case "=":
            return bool(value == wanted)
        case "<>":
            return bool(value != wanted)
        case "in":
            return value in wanted
        case "contains":
            return str(wanted).casefold() in str(value).casefold()
        case "<":
            return bool(value < wanted)
        case "<=":
            return bool(value <= wanted)
        case ">":
            return bool(value > wanted)
        case _:
            return bool(value >= wanted)


def _entity(text: str, nodes: list[UpsertNode]) -> Entity:
    newest = max(nodes, key=lambda node: (node.name.casefold() == text, node.year))
    score = 1.0 if text in (newest.name.casefold(), newest.id.casefold()) else 0.5
    years = tuple(sorted({node.year for node in nodes}))
    return Entity(type=newest.type, id=newest.id, name=newest.name, level=newest.level, years=years, score=score)


def _text(node: UpsertNode) -> str:
    return f"{node.name} {node.properties.get('aims', '')}".casefold()
