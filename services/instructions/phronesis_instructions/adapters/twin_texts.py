"""Elements of tier 3 on the twin: what the ontology fixes, filled into templates beside what was written of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..domain.matrix import Element

_HOLDER = re.compile(r"\{\{(\w+)\}\}")
_COMMON = {
    "id": "string): stable key; with the year it names one record",
    "name": "string): what people call it",
    "year": "integer): fiscal year of the record",
    "quarter": "string): Q1, Q2, Q3 or Q4; absent where data is yearly",
}
_FIXED = "{year: $year, level: $level}"


@dataclass(frozen=True)
class TwinTexts:
    """What the elements are made of, as the files hold it."""

    ontology: dict[str, Any]
    nodes: dict[str, Any]
    relationships: dict[str, Any]
    chains: dict[str, Any]
    templates: dict[str, str]

    def elements(self) -> Iterator[Element]:
        """An element for each node type, each relationship and each chain of the ontology.

        Raises:
            ValueError: something is written of what the ontology has not, or the other way round.
        """
        for name in ("nodes", "relationships", "chains"):
            if set(self.ontology[name]) != set(getattr(self, name)):
                raise ValueError(f"what is written of {name} is not what the ontology has")
        for tag, said in self.nodes.items():
            yield self._element(tag, "node", self._node(tag), said["read_for"])
        for tag, said in self.relationships.items():
            yield self._element(tag, "relationship", self._relationship(tag), said["read_for"])
        for name, said in self.chains.items():
            yield self._element(f"business_chain_{name}", "chain", self._chain(name), said["use_for"])

    def _element(self, tag: str, template: str, values: Mapping[str, str], use_cases: list[str]) -> Element:
        content = _HOLDER.sub(lambda holder: values[holder.group(1)], self.templates[template])
        return Element(tag=tag, tier=3, content=content.strip(), use_cases=tuple(use_cases))

    def _node(self, type: str) -> dict[str, str]:
        said, levels = self.nodes[type], self.ontology["nodes"][type]["levels"]
        return {
            "type": type,
            "what": said["what"],
            "mind": said["mind"],
            "read_for": "; ".join(said["read_for"]),
            **levels,
            "properties": "\n".join(self._properties(type)),
            "further": _listed("Further properties", [self._property(type, name) for name in said.get("further", [])]),
            "portfolio": _listed("In the sample portfolio, beside these", self._portfolio(type)),
            "out": "\n".join(self._links(type, "from")) or "- none",
            "in": "\n".join(self._links(type, "to")) or "- none",
        }

    def _properties(self, type: str) -> Iterator[str]:
        levels = self.ontology["nodes"][type]["levels"]
        for name, about in _COMMON.items():
            yield f"- {name} ({about}"
        yield f"- level (string): {', '.join(f'{level} {meaning}' for level, meaning in levels.items())}"
        said = self.nodes[type]
        apart = said.get("further", [])
        own = [name for name in self.ontology["nodes"][type].get("properties", {}) if name not in apart]
        for name in said.get("first", own):
            yield self._property(type, name)

    def _property(self, type: str, name: str) -> str:
        extra = self.ontology["portfolio"]["nodes"].get(type, {"properties": {}})["properties"]
        about = {**extra, **self.ontology["nodes"][type].get("properties", {})}[name]
        return f"- {name} ({about['type']}): {self.nodes[type]['properties'][name]}{_limits(about)}"

    def _portfolio(self, type: str) -> list[str]:
        extension = self.ontology["portfolio"]
        found = []
        if extra := extension["nodes"].get(type):
            meaning = ", ".join(f"{level} {about}" for level, about in extra["levels"].items())
            found = [f"- level: {meaning}", *(self._property(type, name) for name in extra["properties"])]
        for name, ends in extension["relationships"].items():
            if type in (*ends["from"], *ends["to"]):
                pair = f"({' | '.join(ends['from'])})-[:{name}]->({' | '.join(ends['to'])})"
                found.append(f"- {pair}, which may join levels")
        return found

    def _links(self, type: str, end: str) -> Iterator[str]:
        for name, ends in self.ontology["relationships"].items():
            if type in ends[end]:
                other = " | ".join(ends["to" if end == "from" else "from"])
                link = f"[:{name}]->({other})" if end == "from" else f"({other})-[:{name}]->"
                yield f"- {link}: {_lower(self.relationships[name]['means'])}"

    def _relationship(self, type: str) -> dict[str, str]:
        said, ends = self.relationships[type], self.ontology["relationships"][type]
        others = [one for one in (*ends["from"][1:], *ends["to"][1:])]
        chains = [name for name, steps in self.ontology["chains"].items() if any(type in _either(step) for step in steps)]
        return {
            "type": type,
            "means": said["means"],
            "absent": said["absent"],
            "read_for": "; ".join(said["read_for"]),
            "pairs": "\n".join(f"- ({a})-[:{type}]->({b})" for a in ends["from"] for b in ends["to"]),
            "chains": ", ".join(chains) or "no chain; it is a direct link alone",
            "from": ends["from"][0],
            "to": ends["to"][0],
            "others": f"For {', '.join(others)}, put that type in its place." if others else "",
        }

    def _chain(self, name: str) -> dict[str, str]:
        said, steps = self.chains[name], [_either(step) for step in self.ontology["chains"][name]]
        hops = range(1, len(steps), 2)
        lines = [f"{place}. {_pattern(steps[hop - 1], steps[hop], steps[hop + 1])}" for place, hop in enumerate(hops, 1)]
        branches = [" or ".join(step) for step in steps if len(step) > 1]
        told = f"Of {'; of '.join(branches)} the read takes the first; run it for each of the others too.\n"
        return {
            "name": name,
            "answers": said["answers"],
            "mind": said["mind"],
            "use_for": "; ".join(said["use_for"]),
            "steps": "\n".join(lines),
            "example": _example(steps),
            "branches": told if branches else "",
        }


def _either(step: str) -> list[str]:
    return [part.strip() for part in step.split("|")]


def _pattern(start: list[str], link: list[str], end: list[str]) -> str:
    return f"({' | '.join(start)})-[:{' | '.join(link)}]->({' | '.join(end)})"


def _example(steps: list[list[str]]) -> str:
    path = f"(n0:{steps[0][0]} {_FIXED})"
    for hop in range(1, len(steps), 2):
        path += f"-[:{steps[hop][0]}]->(n{hop // 2 + 1}:{steps[hop + 1][0]} {_FIXED})"
    last = len(steps) // 2
    return (
        f"MATCH {path}\nWHERE n0.id > $last_seen_id\n"
        f"RETURN n0.id AS id, n0.name AS name, count(DISTINCT n{last}.id) AS reached\nORDER BY id LIMIT 30"
    )


def _limits(about: Mapping[str, Any]) -> str:
    told = []
    if "range" in about:
        told.append("from {} to {}".format(*about["range"]))
    if "high_above" in about:
        told.append(f"high above {about['high_above']}")
    if "enum" in about:
        told.append("one of " + ", ".join(about["enum"]))
    if "unit" in about:
        told.append(f"in {about['unit']}")
    if about["type"] == "text":
        told.append("long, so return it for single things alone")
    return f"; {', '.join(told)}" if told else ""


def _listed(heading: str, lines: list[str]) -> str:
    return "\n\n" + "\n".join([heading, *lines]) if lines else ""


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
