"""The file format of ontologies: read strictly, refused with the path and the line of what is at fault."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from phronesis_contracts.ontology import OntologyRefused
from phronesis_contracts.twin import Level

from .ontology import Chain, Kind, LevelRule, NodeType, Ontology, Property, RelationshipType, Words
from .ontology_rules import Path, find_fault

MAX_TEXT = 300_000
"""Bytes of a file."""
MAX_DEPTH = 12
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Of a file of this size Python's own makes half a second."""
_SPACES = re.compile(r"\s+")


@cache
def load() -> Ontology:
    """The packaged ontology. Raises `OntologyRefused`: the file does not fit together."""
    return parse(packaged_text())


@cache
def packaged_text() -> str:
    """The file of the packaged ontology."""
    return files("phronesis_graph").joinpath("content", "transformation_twin.yaml").read_text(encoding="utf-8")


@cache
def packaged_version() -> str:
    """What tells the packaged ontology from that of another release."""
    return f"packaged-{hashlib.sha256(packaged_text().encode()).hexdigest()[:12]}"


def parse(text: str) -> Ontology:
    """The ontology in `text`.

    Raises `OntologyRefused`: it is no ontology; `field` is the path to what is at fault, and the detail begins with its line.
    """
    lines: dict[Path, int] = {}
    data = _read_yaml(text, lines)
    try:
        file = _File.model_validate(data)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        path = tuple(str(part) for part in fault["loc"] if part != "[key]")
        raise _refusal(lines, path, _ADVICE.get(fault["type"], str(fault["msg"]).removeprefix("Value error, "))) from error
    ontology = _to_ontology(file)
    if (found := find_fault(ontology)) is not None:
        raise _refusal(lines, *found)
    return ontology


_ADVICE = {
    "extra_forbidden": "there is no such setting here",
    "missing": "this is required",
    "string_pattern_mismatch": "this is no name of the right form; see the format of ontology files",
    "too_short": "this is empty",
    "model_type": "a mapping is needed here",
    "dict_type": "a mapping is needed here",
    "tuple_type": "a list is needed here",
}


def _refusal(lines: Mapping[Path, int], path: Path, detail: str) -> OntologyRefused:
    known = next((path[:end] for end in range(len(path), -1, -1) if path[:end] in lines), ())
    return OntologyRefused(f"line {lines.get(known, 1)}: {detail}", field=".".join(part[:80] for part in path) or "text")


def _read_yaml(text: str, lines: dict[Path, int]) -> Any:
    if len(text.encode("utf-8", "replace")) > MAX_TEXT:
        raise OntologyRefused(f"the file has over {MAX_TEXT} bytes", field="text")
    try:
        _screen_events(text)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "this is no YAML"
        raise OntologyRefused(f"line {mark.line + 1 if mark else 1}: {problem}", field="text") from error
    if not isinstance(root, yaml.MappingNode):
        raise OntologyRefused("line 1: the file is a mapping with `nodes`", field="text")
    return _plain(root, (), lines)


def _screen_events(text: str) -> None:
    """Refuse what an ontology has no use for and a reader could be hurt by, before anything is built of it."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = (event.start_mark.line if event.start_mark else 0) + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise OntologyRefused(f"line {line}: anchors and aliases are not taken; write it out", field="text")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise OntologyRefused(f"line {line}: this is nested too deeply", field="text")


def _plain(node: yaml.Node, path: Path, lines: dict[Path, int]) -> Any:
    """Every scalar as text, so that `on` and `no` stay words; an empty one is nothing."""
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            line = key.start_mark.line + 1
            if name is None:
                raise OntologyRefused(f"line {line}: a name is needed", field=".".join(path) or "text")
            if name in found:
                raise OntologyRefused(f"line {line}: {name[:60]} stands here twice", field=".".join((*path, name[:80])))
            lines[*path, name] = line
            found[name] = _plain(value, (*path, name), lines)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each, (*path, str(i)), lines) for i, each in enumerate(node.value)]
    quoted = bool(getattr(node, "style", None))
    return str(node.value) if quoted or node.value not in ("", "~", "null") else None


def _one_or_many(given: Any) -> Any:
    """A word, a list of words, or words with their plural (`{one: ox, many: oxen}`) as one list."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list):
        return given
    return [word for each in given for word in (_both_numbers(each) if isinstance(each, dict) else [each])]


def _both_numbers(given: Mapping[str, Any]) -> list[Any]:
    return [given[number] for number in ("one", "many") if number in given] if given.keys() <= {"one", "many"} else [given]


def _without_spaces(given: Any) -> Any:
    return _SPACES.sub(" ", given).strip() if isinstance(given, str) else given


def _steps(given: Any) -> Any:
    """A chain as its steps alone."""
    return {"steps": given} if isinstance(given, list) else given


def _empty(given: Any) -> Any:
    return {} if given is None else given


def _label(given: Any) -> Any:
    return {"en": [given]} if isinstance(given, str) else given


Word = Annotated[str, Field(min_length=1, max_length=120), BeforeValidator(_without_spaces)]
WordList = Annotated[tuple[Word, ...], Field(min_length=1, max_length=60), BeforeValidator(_one_or_many)]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
WordsGiven = Annotated[dict[Language, WordList], Field(max_length=10), BeforeValidator(_empty)]
TypeName = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]{0,62}$")]
PropertyName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
RelationshipName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,62}$")]
ChainName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")]
Choice = Annotated[str, Field(min_length=1, max_length=200)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Property(_Part):
    type: Kind
    unit: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    enum: tuple[Choice, ...] = Field(default=(), max_length=100)
    range: tuple[float, float] | None = None
    high_above: float | None = None
    words: WordsGiven = {}
    most: WordsGiven = {}
    least: WordsGiven = {}
    values: dict[Choice, WordsGiven] = Field(default={}, max_length=100)


class _Node(_Part):
    words: WordsGiven = {}
    levels: dict[Level, Annotated[WordsGiven, BeforeValidator(_label)]] = {}
    properties: Annotated[dict[PropertyName, _Property], Field(max_length=60), BeforeValidator(_empty)] = {}


class _Phrases(_Part):
    forward: WordList | tuple[()] = ()
    backward: WordList | tuple[()] = ()


class _Relationship(_Part):
    source: tuple[TypeName, ...] = Field(alias="from", min_length=1, max_length=60)
    target: tuple[TypeName, ...] = Field(alias="to", min_length=1, max_length=60)
    rule: LevelRule | None = None
    words: Annotated[dict[Language, _Phrases], Field(max_length=10), BeforeValidator(_empty)] = {}


class _Chain(_Part):
    steps: tuple[Annotated[str, Field(max_length=1_000)], ...] = Field(min_length=3, max_length=41)
    words: WordsGiven = {}


class _File(_Part):
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_. -]{0,62}$")
    nodes: dict[TypeName, Annotated[_Node, BeforeValidator(_empty)]] = Field(min_length=1, max_length=60)
    relationships: Annotated[dict[RelationshipName, _Relationship], Field(max_length=120), BeforeValidator(_empty)] = {}
    hierarchy: RelationshipName | None = None
    chains: Annotated[
        dict[ChainName, Annotated[_Chain, BeforeValidator(_steps)]], Field(max_length=20), BeforeValidator(_empty)
    ] = {}


def _to_ontology(file: _File) -> Ontology:
    nodes = {name: _to_type(name, body) for name, body in file.nodes.items()}
    relationships = {name: _to_relationship(name, body, nodes) for name, body in file.relationships.items()}
    if file.hierarchy is not None and file.hierarchy not in relationships:
        everything = tuple(nodes)
        relationships[file.hierarchy] = RelationshipType(file.hierarchy, everything, everything, LevelRule.DOWN)
    chains = {
        name: Chain(name, tuple(tuple(part.strip() for part in step.split("|")) for step in body.steps), _frozen(body.words))
        for name, body in file.chains.items()
    }
    return Ontology(
        MappingProxyType(nodes), MappingProxyType(relationships), MappingProxyType(chains), file.name, file.hierarchy
    )


def _to_type(name: str, body: _Node) -> NodeType:
    levels = {level: _frozen(words) for level, words in sorted(body.levels.items())}
    properties = {key: _to_property(key, value) for key, value in body.properties.items()}
    return NodeType(name, MappingProxyType(levels), MappingProxyType(properties), _frozen(body.words))


def _to_property(name: str, body: _Property) -> Property:
    lowest, highest = body.range or (None, None)
    values = {value: _frozen(words) for value, words in body.values.items()}
    return Property(
        name,
        body.type,
        lowest,
        highest,
        body.enum,
        body.high_above,
        body.unit,
        _frozen(body.words),
        _frozen(body.most),
        _frozen(body.least),
        MappingProxyType(values),
    )


def _to_relationship(name: str, body: _Relationship, nodes: Mapping[str, NodeType]) -> RelationshipType:
    ends = (*body.source, *body.target)
    # Nodes without levels stand at one level all together.
    flat = all(end in nodes and not nodes[end].levels for end in ends)
    rule = body.rule or (LevelRule.SAME if flat else LevelRule.ANY)
    forward = {language: phrases.forward for language, phrases in body.words.items() if phrases.forward}
    backward = {language: phrases.backward for language, phrases in body.words.items() if phrases.backward}
    return RelationshipType(name, body.source, body.target, rule, _frozen(forward), _frozen(backward))


def _frozen(words: Mapping[str, tuple[str, ...]]) -> Words:
    return MappingProxyType({language: tuple(dict.fromkeys(each)) for language, each in words.items()})
