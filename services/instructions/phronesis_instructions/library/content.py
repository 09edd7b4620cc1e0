"""What ships.

The agents' folders and the matrix, read from the package's content files; elements on the twin are filled in from the
ontology.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, Field, model_validator

import phronesis_tokens as tokens
from phronesis_contracts import Message, Token
from phronesis_contracts.instructions import Tag, Version
from phronesis_contracts.orchestrator import Directive

from .texts import MODES, PURPOSE, TIER_1, Text, combine_parts, mode_tag, platform_bundle, preface_tag, unknown_tools

_PROMPTS = {
    "router": frozenset({"router", "final", "repair"}),
    "quick": frozenset({"classify", "repair"}),
    "tools": frozenset({"classify", "tools", "repair", "unread", "closing"}),
}
"""The prompts that a loop cannot do without."""
_ALLOWED = frozenset({PURPOSE, "tools", "repair", "closing"})


class AgentContent(Message):
    """One agent's folder of content. A fault in it stops the service at its start, since it ships with the service."""

    model_config = ConfigDict(extra="forbid")

    agent: Token
    version: str = Field(pattern=r"^\d{1,9}\.\d{1,9}\.\d{1,9}$")
    loop: Literal["quick", "router", "tools", "task"]
    stages: tuple[str, ...] = Field(min_length=1)
    prompts: dict[str, str]
    directives: dict[str, str]
    phrases: dict[str, str]
    bootstrap: str = ""
    """Tag of the text that stands before every prompt; empty for an agent that has none."""

    @model_validator(mode="after")
    def _complete(self) -> AgentContent:
        required = _ALLOWED if PURPOSE in self.prompts else _PROMPTS.get(self.loop, frozenset())
        if missing := required - set(self.prompts):
            raise ValueError(f"{self.agent} lacks prompts: {', '.join(sorted(missing))}")
        if self.loop == "router" and set(self.directives) != {directive.value for directive in Directive}:
            raise ValueError(f"{self.agent} needs a text for each of the four directives, and for no other")
        if lost := unknown_tools(self.prompts.get(PURPOSE, "")):
            raise ValueError(f"{self.agent} is allowed tools that there are not: {', '.join(lost)}")
        for group in (self.prompts, self.directives, self.phrases):
            if blank := [name for name, text in group.items() if not text.strip()]:
                raise ValueError(f"{self.agent} has blank texts: {', '.join(blank)}")
        return self

    def digest(self) -> str:
        fields = self.model_dump(mode="json")
        if not self.bootstrap:  # as the version before, which does not know it: the two would replace one another for ever
            del fields["bootstrap"]
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    def prompt_tags(self) -> dict[str, str]:
        return {purpose: f"{self.agent}/{purpose}" for purpose in self.prompts}

    def directive_tags(self) -> dict[str, str]:
        return {name: f"{self.agent}/directive/{name}" for name in self.directives}

    @property
    def name(self) -> str:
        return self.agent


class Element(Message):
    """One element of tier 2 or 3 as a file holds it."""

    model_config = ConfigDict(extra="forbid")

    tag: Tag
    tier: int = Field(ge=2, le=3)
    content: str = Field(min_length=1)
    dependencies: tuple[str, ...] = ()
    use_cases: tuple[str, ...] = Field(min_length=1)


class Matrix(Message):
    """All of it. A fault stops the service at its start, since it ships with the service."""

    model_config = ConfigDict(extra="forbid")

    version: Version
    tier1: str = Field(min_length=1)
    prefaces: dict[str, str]
    """By mode, in lower case."""
    elements: tuple[Element, ...]
    """Those of tier 2 in the order in which bundles hold them."""

    @property
    def name(self) -> str:
        return "the matrix"

    @model_validator(mode="after")
    def _whole(self) -> Matrix:
        tags = Counter(element.tag for element in self.elements)
        if doubles := sorted(tag for tag, count in tags.items() if count > 1):
            raise ValueError(f"tags that are there twice: {', '.join(doubles)}")
        if set(self.prefaces) != set(MODES):
            raise ValueError("each of the data modes needs a preface")
        if lost := sorted({tag for element in self.elements for tag in element.dependencies} - set(tags)):
            raise ValueError(f"dependencies that there are not: {', '.join(lost)}")
        return self

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()

    def texts(self) -> tuple[Text, ...]:
        return (platform_bundle(TIER_1, self.tier1, self.version, "bootstrap"), *self._bundles(), *self._elements())

    def _bundles(self) -> list[Text]:
        parts = [element.content for element in self.elements if element.tier == 2]
        found = []
        for mode, preface in sorted(self.prefaces.items()):
            found.append(platform_bundle(preface_tag(mode), preface, self.version, "mode_preface"))
            # Modes B and D plan ahead over several steps; A and C answer one thing.
            category = "mode_strategy" if mode in "bd" else "mode_tactical"
            found.append(platform_bundle(mode_tag(mode), combine_parts(preface, parts), self.version, category))
        return found

    def _elements(self) -> list[Text]:
        return [
            Text(
                element.tag,
                "element",
                element.content,
                self.version,
                "active",
                tokens.count(element.content),
                tier=element.tier,
                dependencies=element.dependencies,
                use_cases=element.use_cases,
                position=place,
            )
            for place, element in enumerate(self.elements, 1)
        ]


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
            "further": _bullet_list("Further properties", [self._property(type, name) for name in said.get("further", [])]),
            "portfolio": _bullet_list("In the sample portfolio, beside these", self._portfolio(type)),
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
                yield f"- {link}: {_lower_first(self.relationships[name]['means'])}"

    def _relationship(self, type: str) -> dict[str, str]:
        said, ends = self.relationships[type], self.ontology["relationships"][type]
        others = [one for one in (*ends["from"][1:], *ends["to"][1:])]
        chains = [
            name for name, steps in self.ontology["chains"].items() if any(type in _as_either_end(step) for step in steps)
        ]
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
        said, steps = self.chains[name], [_as_either_end(step) for step in self.ontology["chains"][name]]
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


def _as_either_end(step: str) -> list[str]:
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


def _bullet_list(heading: str, lines: list[str]) -> str:
    return "\n\n" + "\n".join([heading, *lines]) if lines else ""


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def read_agents() -> tuple[AgentContent, ...]:
    """The content of every agent, by name. Raises `ValueError`: a file that does not fit what an agent needs."""
    folders = (files("phronesis_instructions") / "content" / "agents").iterdir()
    return tuple(_read_agent(folder) for folder in sorted(folders, key=lambda folder: folder.name) if folder.is_dir())


def _read_agent(folder: Traversable) -> AgentContent:
    profile = yaml.safe_load((folder / "profile.yaml").read_text("utf-8"))
    directives = folder / "directives"
    # What is asked of every agent alike stands once, unless the folder of one says otherwise.
    shared = _read_texts(files("phronesis_instructions") / "content" / "shared")
    content = AgentContent.model_validate(
        {
            **profile,
            "prompts": shared | _read_texts(folder),
            "directives": _read_texts(directives) if directives.is_dir() else {},
        }
    )
    if content.agent != folder.name:
        raise ValueError(f"the folder {folder.name} holds the profile of {content.agent}")
    return content


def _read_texts(folder: Traversable) -> dict[str, str]:
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".md")), key=lambda file: file.name)
    return {file.name.removesuffix(".md"): file.read_text("utf-8").strip() for file in found}


_FENCE = "---\n"


def read_matrix() -> Matrix:
    """The matrix as it ships. Raises `ValueError`: a file that does not fit what the matrix needs."""
    folder = files("phronesis_instructions") / "content" / "matrix"
    order = _read_yaml(folder / "matrix.yaml")
    tier_2 = [_read_element(folder / "tier2", tag, 2) for tag in order["tier2"]]
    charts = [_read_element(folder / "visualizations", tag, 3) for tag in order["visualizations"]]
    patterns = [_read_element(folder / "patterns", tag, 3) for tag in order["patterns"]]
    written = {name: _read_yaml(folder / f"{name}.yaml") for name in ("ontology", "nodes", "relationships", "chains")}
    templates = {name: _read_text(folder / "templates" / f"{name}.md") for name in ("node", "relationship", "chain")}
    twin = TwinTexts(**written, templates=templates)
    return Matrix(
        version=order["version"],
        tier1=_read_text(folder / "tier1.md"),
        prefaces={mode: _read_text(folder / "modes" / f"{mode}.md") for mode in MODES},
        elements=(*tier_2, *twin.elements(), *charts, *patterns),
    )


def _read_element(folder: Traversable, tag: str, tier: int) -> Element:
    before, head, content = (folder / f"{tag}.md").read_text("utf-8").split(_FENCE, 2)
    if before:
        raise ValueError(f"{tag}.md does not begin with its head")
    return Element(tag=tag, tier=tier, content=content.strip(), **yaml.safe_load(head))


def _read_yaml(file: Traversable) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return found


def _read_text(file: Traversable) -> str:
    return file.read_text("utf-8").strip()
