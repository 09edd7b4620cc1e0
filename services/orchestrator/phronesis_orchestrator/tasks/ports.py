"""The language of plans, and what a background task needs from outside: tools, a planner, and places for its state."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal, Protocol, Self, runtime_checkable

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.parser import ParsedResult
from jmespath.visitor import Visitor
from jsonschema import Draft202012Validator
from jsonschema.validators import extend, validator_for
from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator
from referencing import Registry

from phronesis_contracts import UNKNOWN, Label, Message, Principal, Tool
from phronesis_contracts.answers import Visualization
from phronesis_contracts.orchestrator import StartingEvent
from phronesis_contracts.outside import PREFIX
from phronesis_contracts.tasks import MAX_BLOCKS, FigureRow, ReportBlock, SourceRow, TableBlock, TaskState, Verified

from ..models.reasoner import Answer, Fault, TurnContext
from ..turns.turn import Claim

MAX_STEPS = 60
"""Steps of one plan."""
MAX_WAVES = 20
MAX_OF_WAVE = 16
"""Steps that are made side by side."""
MAX_PATH = 500
"""Characters of a path into a result."""
_MAX_WAYS = 100
"""How many times a path may take the same value over: each `[@, @]` behind another doubles what there is."""
MAX_QUESTION = 4_000
MAX_ITEMS = 100
"""Items that one step goes through at most."""


class BadPlan(ValueError):
    """A plan that is not worked off; the text says why, and names the step and the field."""


class Each(Message):
    """The list that a step goes through: it is made once for each item."""

    of: str = Field(min_length=1, max_length=64)
    """The step whose result holds the list."""
    path: str = Field(default="@", min_length=1, max_length=MAX_PATH)
    """JMESPath of the list in that result."""
    limit: int = Field(default=25, ge=1, le=MAX_ITEMS)
    """With more items the step fails before any call is made."""


class When(Message):
    """What has to hold for a step to be made."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    of: str = Field(min_length=1, max_length=64)
    """The step whose result is looked at."""
    path: str = Field(default="@", min_length=1, max_length=MAX_PATH)
    """JMESPath of the value in that result."""
    test: Literal["empty", "not_empty", "equals", "more_than"] = Field(alias="is")
    """A value is empty where it is null, or a text, list or object without anything in it."""
    value: Any = None
    """What it has to equal, or the number that it has to be more than."""


class Step(Message):
    """One step of a plan."""

    id: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = Field(min_length=1, max_length=1_000)
    tool: str | None = None
    """The tool that it calls; a step with neither tool nor question is worked on by a model, with all the tools at hand."""
    question: str | None = Field(default=None, min_length=1, max_length=MAX_QUESTION)
    """What is asked in place of a call, as a person would ask it. Its result is a `QuestionAnswer`."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Of the tool. `{"$of": id, "path": JMESPath}` stands for what an earlier step gave, `{"$item": JMESPath}` for a part of
    the item at hand; both may also stand inside a text, and in the question."""
    each: Each | None = None
    """Makes the step once for each item of a list. Its result is then `{"items": [...]}`."""
    when: When | None = None
    """Leaves the step out where it does not hold."""
    depends: tuple[str, ...] = Field(default=(), max_length=MAX_STEPS)
    """Steps of earlier waves without which it is not made."""
    wave: int = Field(ge=1, le=1_000)
    optional: bool = False
    """Only looks around: it is left out where a strategy that worked did without its tool."""


class Plan(Message):
    """The steps to a goal."""

    title: str = Field(default="", max_length=300)
    """What the report will be called."""
    kind: str = Field(default="", max_length=100)
    """What sort of task it is, where the planner knows it."""
    steps: tuple[Step, ...]


class NoValue(Exception):
    """A path gave nothing, or nothing that can stand where it is wanted; the text says which."""


@dataclass(frozen=True)
class Placeholder:
    """What stands for a value that is known when the step is made."""

    path: str
    of: str | None = None
    """The step whose result it is taken from; `None` for the item at hand."""


_OF, _ITEM = "$of", "$item"
_IN_TEXT = re.compile(r'\{\s*"\$(?:of|item)"')
Where = tuple[str | int, ...]
"""The place of a value: names of members and numbers of items."""


def find_placeholders(value: Any, where: Where = ()) -> Iterator[tuple[Where, Placeholder, bool]]:
    """The placeholders in arguments or in a question: where each is, and whether it stands inside a text.

    Raises:
        BadPlan: one is not written as it has to be.
    """
    match value:
        case str():
            for part in _split_text(value):
                if isinstance(part, Placeholder):
                    yield where, part, True
        case Mapping():
            if (found := _placeholder(value)) is not None:
                yield where, found, False
            else:
                for name, member in value.items():
                    yield from find_placeholders(member, (*where, str(name)))
        case list() | tuple():
            for at, member in enumerate(value):
                yield from find_placeholders(member, (*where, at))


def fill_placeholders(value: Any, results: Mapping[str, Any], item: Any = None) -> Any:
    """A value with every placeholder replaced. What a result holds is never looked through for placeholders.

    Args:
        results: what the steps gave, by their ids.
        item: what `$item` is a part of.

    Raises:
        NoValue: a placeholder gives nothing.
    """
    match value:
        case str():
            return "".join(part if isinstance(part, str) else _as_text(part, results, item) for part in _split_text(value))
        case Mapping():
            if (found := _placeholder(value)) is not None:
                return _value(found, results, item)
            return {name: fill_placeholders(member, results, item) for name, member in value.items()}
        case list() | tuple():
            return [fill_placeholders(member, results, item) for member in value]
        case _:
            return value


def compile_path(path: str) -> ParsedResult:
    """A path that is followed soon. Raises `ValueError`: it is no JMESPath, or gives far more than it is given."""
    try:
        found = jmespath.compile(path)
        ways = _ways(found.parsed)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if ways > _MAX_WAYS:
        raise ValueError("it takes the same values over too often")
    return found


def _ways(node: Any) -> int:
    """How many times a path takes a value over at most."""
    children = [one for one in node["children"] if isinstance(one, dict)]
    own = len(children) if node["type"] in ("multi_select_list", "multi_select_dict") else 1
    return max(own, 1) * math.prod(_ways(one) for one in children)


def look_up(path: str, value: Any) -> Any:
    """What a path gives; `None` where it gives nothing. Raises `NoValue`: it cannot be followed in this value."""
    try:
        return compile_path(path).search(value)
    except (JMESPathError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise NoValue(f"the path {path!r} cannot be followed: {error}"[:300]) from error


def is_empty(value: Any) -> bool:
    """Whether there is nothing in a value. The number 0 and `false` are something."""
    return value is None or (isinstance(value, str | list | dict) and not value)


def holds(when: When, results: Mapping[str, Any]) -> bool:
    """Whether a condition holds. Raises `NoValue`: its path cannot be followed."""
    found = look_up(when.path, results.get(when.of))
    match when.test:
        case "empty":
            return is_empty(found)
        case "not_empty":
            return not is_empty(found)
        case "equals":
            return _same(found, when.value)
        case "more_than":
            return is_number(found) and is_number(when.value) and bool(found > when.value)


def is_number(value: Any) -> bool:
    """Whether a value is a number: true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is 1.0, and neither is true."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _placeholder(value: Mapping[Any, Any]) -> Placeholder | None:
    if _OF not in value and _ITEM not in value:
        return None
    given = dict(value)
    of, path = (given.pop(_OF), given.pop("path", "@")) if _OF in given else (None, given.pop(_ITEM))
    named = of is None if _OF not in value else isinstance(of, str)
    if given or not named or not isinstance(path, str) or not 0 < len(path) <= MAX_PATH:
        raise BadPlan(
            f'{json.dumps(value, default=str)[:100]} is no placeholder: {{"$of": step, "path": path}} or {{"$item": path}}'
        )
    return Placeholder(path, of)


def _split_text(text: str) -> Iterator[str | Placeholder]:
    """The pieces of a text, with the placeholders in it."""
    at = 0
    while (found := _IN_TEXT.search(text, at)) is not None:
        try:
            given, end = json.JSONDecoder().raw_decode(text, found.start())
        except (ValueError, RecursionError) as error:
            raise BadPlan(f"a placeholder in a text cannot be read: {text[found.start() :][:100]}") from error
        stated = _placeholder(given)
        assert stated is not None, "it begins as one"
        yield text[at : found.start()]
        yield stated
        at = end
    yield text[at:]


def _value(wanted: Placeholder, results: Mapping[str, Any], item: Any) -> Any:
    found = look_up(wanted.path, item if wanted.of is None else results.get(wanted.of))
    if found is None:
        source = "the item" if wanted.of is None else wanted.of
        raise NoValue(f"{source} has nothing at {wanted.path!r}")
    return found


def _as_text(wanted: Placeholder, results: Mapping[str, Any], item: Any) -> str:
    found = _value(wanted, results, item)
    parts = found if isinstance(found, list) else [found]
    if any(isinstance(part, dict | list) or part is None for part in parts):
        raise NoValue(f"what is at {wanted.path!r} cannot stand in a text")
    return ", ".join(part if isinstance(part, str) else json.dumps(part) for part in parts)


def drawn_from(step: Step) -> tuple[str, ...]:
    """The steps whose results a step cannot be made without. Raises `BadPlan`: a placeholder is not written as it has to be."""
    looked_at = [one.of for one in (step.each, step.when) if one is not None]
    stated = (one.of for value in (step.arguments, step.question) for _, one, _ in find_placeholders(value))
    return tuple(dict.fromkeys([*looked_at, *(of for of in stated if of is not None)]))


Schema = Mapping[str, Any]
"""A JSON Schema; the empty one allows anything."""
_ANY: Schema = MappingProxyType({})
_DEEPEST = 6
"""Levels of a result that samples are made for."""
_OF_VALUES = frozenset(
    """pattern format enum const minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
    minItems maxItems uniqueItems minProperties maxProperties propertyNames contains""".split()
)
"""Words of a schema that are about a value and not about its type: whether a value fits is known once it is there."""
_GIVEN = {
    "number": "abs avg ceil floor length sum to_number",
    "boolean": "contains ends_with starts_with",
    "string": "join to_string type",
}
_GIVES: Mapping[str, Schema] = {
    **{name: {"type": kind} for kind, names in _GIVEN.items() for name in names.split()},
    "keys": {"type": "array", "items": {"type": "string"}},
}
"""What functions of JMESPath give, whatever they are given."""


class _NoPath(Exception):
    """A path leads to what a result does not have."""


class _TypeOf(Visitor):
    """Follows a path through a schema in place of a value. `root`: where the definitions of references are."""

    def __init__(self, root: Schema) -> None:
        super().__init__()
        self._root = root

    def alternatives(self, schema: Schema) -> list[Schema]:
        """The schemas of which one has to fit, references followed."""
        found: list[Schema] = []
        waiting, seen = [schema], set[str]()
        while waiting:
            one = waiting.pop(0)
            ref = one.get("$ref")
            if isinstance(ref, str):
                if ref in seen:
                    continue
                seen.add(ref)
                waiting.append(self._target(ref))
            elif options := one.get("anyOf") or one.get("oneOf") or one.get("allOf"):
                waiting.extend(options)
            elif isinstance(kinds := one.get("type"), list):
                waiting.extend({**one, "type": kind} for kind in kinds)
            else:
                found.append(one)
        return found

    def _target(self, ref: str) -> Schema:
        found: Any = self._root
        for part in ref.removeprefix("#/").split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else _ANY

    def of_kind(self, schema: Schema, kind: str) -> list[Schema]:
        """The alternatives that may be of a type."""
        return [one for one in self.alternatives(schema) if one.get("type", kind) == kind]

    def visit_identity(self, node: Any, schema: Schema) -> Schema:
        return schema

    visit_current = visit_identity

    def _through(self, node: Any, schema: Schema) -> Schema:
        for child in node["children"]:
            schema = self.visit(child, schema)
        return schema

    visit_subexpression = visit_index_expression = visit_pipe = _through

    def visit_field(self, node: Any, schema: Schema) -> Schema:
        name = node["value"]
        found = [self._member(one, name) for one in self.of_kind(schema, "object")]
        if not (there := [one for one in found if one is not None]):
            raise _NoPath(f"there is no {name!r} in it")
        return _either(there)

    def _member(self, one: Schema, name: str) -> Schema | None:
        known, more = one.get("properties"), one.get("additionalProperties")
        if isinstance(known, Mapping) and name in known:
            return _mapping(known[name])
        if more is None:
            return None if isinstance(known, Mapping) else _ANY
        return None if more is False else _mapping(more)

    def items(self, schema: Schema) -> Schema:
        """What the items of a list are. Raises `_NoPath`: it is no list."""
        if not (lists := self.of_kind(schema, "array")):
            raise _NoPath("it is no list")
        return _either([part for one in lists for part in one.get("prefixItems") or [_mapping(one.get("items"))]])

    def visit_index(self, node: Any, schema: Schema) -> Schema:
        return self.items(schema)

    def visit_slice(self, node: Any, schema: Schema) -> Schema:
        return _list_of(self.items(schema))

    def visit_flatten(self, node: Any, schema: Schema) -> Schema:
        inner = self.items(self.visit(node["children"][0], schema))
        return _list_of(_either([self.items(one) if one.get("type") == "array" else one for one in self.alternatives(inner)]))

    def visit_projection(self, node: Any, schema: Schema) -> Schema:
        left, right = node["children"][:2]
        return _list_of(self.visit(right, self.items(self.visit(left, schema))))

    def visit_filter_projection(self, node: Any, schema: Schema) -> Schema:
        left, right, test = node["children"]
        inner = self.items(self.visit(left, schema))
        self.visit(test, inner)
        return _list_of(self.visit(right, inner))

    def visit_value_projection(self, node: Any, schema: Schema) -> Schema:
        left, right = node["children"]
        members = [
            _mapping(part)
            for one in self.of_kind(self.visit(left, schema), "object")
            for part in (*one.get("properties", {}).values(), one.get("additionalProperties"))
        ]
        return _list_of(self.visit(right, _either(members)))

    def visit_multi_select_list(self, node: Any, schema: Schema) -> Schema:
        return _list_of(_either([self.visit(child, schema) for child in node["children"]]))

    def visit_multi_select_dict(self, node: Any, schema: Schema) -> Schema:
        return {
            "type": "object",
            "properties": {child["value"]: self.visit(child["children"][0], schema) for child in node["children"]},
        }

    def visit_or_expression(self, node: Any, schema: Schema) -> Schema:
        return _either([self.visit(child, schema) for child in node["children"]])

    visit_and_expression = visit_or_expression

    def visit_not_expression(self, node: Any, schema: Schema) -> Schema:
        self.visit(node["children"][0], schema)
        return {"type": "boolean"}

    def visit_comparator(self, node: Any, schema: Schema) -> Schema:
        for child in node["children"]:
            self.visit(child, schema)
        return {"type": "boolean"}

    def visit_literal(self, node: Any, schema: Schema) -> Schema:
        return _schema_of(node["value"])

    def visit_function_expression(self, node: Any, schema: Schema) -> Schema:
        name = node["value"]
        if name not in Functions.FUNCTION_TABLE:
            raise _NoPath(f"there is no function {name!r}")
        given = [_ANY if child["type"] == "expref" else self.visit(child, schema) for child in node["children"]]
        if name in ("sort", "sort_by", "reverse") and given:
            return given[0]
        if name in ("min", "max", "min_by", "max_by") and given:
            return self.items(given[0])
        if name == "not_null":
            return _either(given)
        return _GIVES.get(name, _ANY)


def _mapping(schema: Any) -> Schema:
    return schema if isinstance(schema, Mapping) else _ANY


def _list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _either(schemas: Sequence[Schema]) -> Schema:
    if not schemas or any(not one for one in schemas):
        return _ANY
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


def _schema_of(value: Any) -> Schema:
    match value:
        case bool():
            return {"type": "boolean"}
        case int() | float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case list():
            return _list_of(_either([_schema_of(one) for one in value]))
        case dict():
            return {"type": "object", "properties": {name: _schema_of(one) for name, one in value.items()}}
        case _:
            return {"type": "null"}


def _samples(types: _TypeOf, schema: Schema, depth: int = 0) -> Iterator[Any]:
    """A value for each alternative of a schema, null only where there is no other."""
    found = [one for one in types.alternatives(schema) if one.get("type") != "null"]
    yield from (_sample(types, one, depth) for one in found)
    if not found:
        yield None


def _sample(types: _TypeOf, one: Schema, depth: int) -> Any:
    if "const" in one:
        return one["const"]
    if enum := one.get("enum"):
        return enum[0]
    match one.get("type"):
        case "object" if depth < _DEEPEST:
            known = one.get("properties", {})
            return {name: next(_samples(types, _mapping(part), depth + 1)) for name, part in known.items()}
        case "array" if depth < _DEEPEST:
            parts = one.get("prefixItems") or [_mapping(one.get("items"))]
            return [next(_samples(types, part, depth + 1)) for part in parts]
        case "object":
            return {}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case _:
            return "x"


def _ignore(*_: Any) -> Iterator[Any]:
    return iter(())


@cache
def _validator(kind: Any) -> Any:
    """One that follows no expression that a stranger wrote."""
    return extend(kind, {"pattern": _ignore})


@dataclass(frozen=True)
class _Result:
    """What a step gives, as far as it is known before it is made."""

    schema: Schema
    root: Schema

    def at(self, path: str) -> _Result:
        """What stands at a path. Raises `_NoPath`."""
        try:
            return _Result(_TypeOf(self.root).visit(compile_path(path).parsed, self.schema), self.root)
        except (JMESPathError, RecursionError, ValueError) as error:
            raise _NoPath(f"it is no JMESPath: {next(iter(str(error).splitlines()), '')}") from error

    def items(self) -> _Result:
        """What its items are. Raises `_NoPath`: it is no list."""
        return _Result(_TypeOf(self.root).items(self.schema), self.root)

    def may_be(self, *kinds: str) -> bool:
        """Whether it may have one of some types."""
        return any(one.get("type") in (None, *kinds) for one in _TypeOf(self.root).alternatives(self.schema))

    def in_text(self) -> bool:
        """Whether it may stand in a text: a text, number, or truth value, or a list of them."""
        plain = ("string", "number", "integer", "boolean")
        return self.may_be(*plain) or (self.may_be("array") and self.items().may_be(*plain))

    def samples(self) -> list[Any]:
        """Values of its types."""
        return list(islice(_samples(_TypeOf(self.root), self.schema), _MAX_WAYS))


_UNKNOWN = _Result(_ANY, _ANY)
Contracts = Mapping[str, Tool[Any, Any]]
"""The tools of a plan, by the names that it knows them by."""
NO_CONTRACTS: Contracts = MappingProxyType({})


def result_of(step: Step, contracts: Contracts) -> _Result:
    """What a step gives. Anything, where its tool is not known."""
    if step.tool is not None:
        if step.tool not in contracts:
            return _UNKNOWN
        output: Any = contracts[step.tool].rpc.output
        schema = _output_schema(output)
    elif step.question is not None:
        schema = _output_schema(QuestionAnswer)
    else:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    if step.each is not None:
        listed = {name: part for name, part in schema.items() if name != "$defs"}
        schema = {"type": "object", "properties": {"items": _list_of(listed)}, "$defs": schema.get("$defs", {})}
    return _Result(schema, schema)


_TOLD = 10
"""Members of one object that an outline tells."""


def outline(tool: Tool[Any, Any]) -> str:
    """What a tool gives, in few words and as paths write it: `items[].{id, title}, total`."""
    output: Any = tool.rpc.output
    schema = _output_schema(output)
    return ", ".join(_outline(_TypeOf(schema), schema))


def _outline(types: _TypeOf, schema: Schema, *, inner: bool = False) -> Iterator[str]:
    for name, part in list(_members(types, schema).items())[:_TOLD]:
        lists = types.of_kind(_mapping(part), "array") if not inner else []
        held = types.items(lists[0]) if lists and "type" in lists[0] else _mapping(part)
        members = ", ".join(_outline(types, held, inner=True)) if not inner else ""
        yield f"{name}{'[]' if held is not part else ''}{f'.{{{members}}}' if members else ''}"


def _members(types: _TypeOf, schema: Schema) -> Mapping[str, Any]:
    found = (one.get("properties") for one in types.alternatives(schema))
    return next((one for one in found if isinstance(one, Mapping)), {})


@cache
def _output_schema(kind: Any) -> dict[str, Any]:
    found: dict[str, Any] = kind.model_json_schema(mode="serialization")
    return found


def check_plan(
    plan: Plan,
    tools: Collection[str],
    done: Sequence[Step] = (),
    *,
    works: bool = True,
    contracts: Contracts = NO_CONTRACTS,
) -> Plan:
    """A plan that can be worked off, its waves counted from 1 without holes; each step also depends on what it draws from.

    Args:
        done: finished steps that its own may depend on.
        works: whether a step with neither tool nor question can be made.
        contracts: of the tools, which arguments and paths are held to; where one is missing, neither is known.

    Raises:
        BadPlan: it is empty, too large, cyclic, names an unknown tool or step, a step stands before what it needs, arguments do
            not fit their tool, or a path leads to what a result does not have.
    """
    if not plan.steps:
        raise BadPlan("it has no steps")
    if len(plan.steps) > MAX_STEPS:
        raise BadPlan(f"it has more than {MAX_STEPS} steps")
    steps = tuple(_with_needs(step) for step in plan.steps)
    waves = {step.id: step.wave for step in steps}
    if len(waves) < len(steps) or set(waves) & {step.id for step in done}:
        raise BadPlan("two of its steps have one id")
    _check_names(steps, done)
    _acyclic(steps)
    for step in steps:
        _check_step(step, tools, waves, {step.id for step in done}, works)
    known = {step.id: step for step in (*done, *steps)}
    for step in steps:
        _check_values(step, known, contracts)
    counted = _renumber_waves(steps)
    if max(step.wave for step in counted) > MAX_WAVES:
        raise BadPlan(f"it has more than {MAX_WAVES} waves")
    return plan.model_copy(update={"steps": counted})


def names_of(step: Step) -> Iterator[str]:
    """The id of a step, and what its calls are journalled under, which no other step may be called."""
    yield step.id
    if step.each is not None:
        yield f"{step.id}.items"
        yield from (f"{step.id}.{at}" for at in range(1, step.each.limit + 1))


def _check_names(steps: Iterable[Step], done: Iterable[Step]) -> None:
    taken = set[str]()
    for step in (*done, *steps):
        if taken & (names := set(names_of(step))):
            raise BadPlan(f"{step.id} is called like a call of another step")
        taken |= names


def _check_values(step: Step, known: Mapping[str, Step], contracts: Contracts) -> None:
    """Hold all that a step draws from results to what those will have. Raises `BadPlan`."""

    def at(field: str, of: str, path: str) -> _Result:
        try:
            return result_of(known[of], contracts).at(path)
        except _NoPath as error:
            raise BadPlan(f"{step.id}, {field}: the path {path!r} into {of}: {error}") from error

    if step.when is not None:
        found = at("when", step.when.of, step.when.path)
        if step.when.test == "more_than" and not (is_number(step.when.value) and found.may_be("number", "integer")):
            raise BadPlan(f"{step.id}, when: more_than holds numbers against each other")
    item = None
    if step.each is not None:
        try:
            item = at("each", step.each.of, step.each.path).items()
        except _NoPath as error:
            raise BadPlan(f"{step.id}, each: what it goes through is no list") from error

    def drawn(field: str, one: Placeholder) -> _Result:
        if one.of is not None:
            return at(field, one.of, one.path)
        if item is None:
            raise BadPlan(f"{step.id}, {field}: there is no item where nothing is gone through")
        try:
            return item.at(one.path)
        except _NoPath as error:
            raise BadPlan(f"{step.id}, {field}: the path {one.path!r} into an item: {error}") from error

    holes: list[tuple[Where, _Result]] = []
    for name, value in (("question", step.question), ("arguments", step.arguments)):
        for where, one, inside in find_placeholders(value):
            field = ".".join(map(str, (name, *where)))
            result = drawn(field, one)
            if inside and not result.in_text():
                raise BadPlan(f"{step.id}, {field}: what is at {one.path!r} cannot stand in a text")
            if name == "arguments":
                holes.append((where, _TEXT if inside else result))
    if step.tool is not None and step.tool in contracts:
        _check_arguments(step, contracts[step.tool], holes)


_TEXT = _Result({"type": "string"}, _ANY)


def _check_arguments(step: Step, tool: Tool[Any, Any], holes: Sequence[tuple[Where, _Result]]) -> None:
    """Hold arguments to their tool's schema, with samples in place of what is not known yet. Raises `BadPlan`."""
    model: type[Message] = tool.rpc.input
    schema = model.model_json_schema()
    strange = set(step.arguments) - set(schema.get("properties", {})) - set(model.model_fields)
    if strange and not tool.name.startswith(PREFIX) and not schema.get("additionalProperties"):
        raise BadPlan(f"{step.id}, arguments: {tool.name} has no {', '.join(sorted(strange))}")
    if not holes:
        try:
            model.model_validate_json(json.dumps(step.arguments))
        except (ValidationError, ValueError) as error:
            raise BadPlan(f"{step.id}, {_first_fault(error)}") from error
        return
    filled: Any = step.arguments
    loose = {where for where, result in holes if not result.schema}
    for where, result in holes:
        filled = _fitting(filled, where, result.samples(), schema)
    check = _validator(validator_for(schema, default=Draft202012Validator))(schema, registry=Registry())
    places = {where for where, _ in holes}
    for fault in check.iter_errors(filled):
        if not _may_pass(fault, places, loose):
            raise BadPlan(f"{step.id}, {'.'.join(map(str, ('arguments', *fault.absolute_path)))}: {fault.message}"[:500])


def _first_fault(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return f"arguments: {error}"[:500]
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, ('arguments', *fault['loc'])))}: {fault['msg']}"[:500]


def _fitting(arguments: Any, where: Where, samples: Sequence[Any], schema: Schema) -> Any:
    """The arguments with the sample at a place that the schema finds least wrong with: one of several types is enough."""
    check = _validator(validator_for(schema, default=Draft202012Validator))(schema, registry=Registry())
    tried = [_put(arguments, where, sample) for sample in samples]

    def faults(one: Any) -> int:
        return sum(1 for fault in check.iter_errors(one) if not _may_pass(fault, {where}, frozenset()))

    return min(tried, key=faults) if len(tried) > 1 else tried[0]


def _put(value: Any, where: Where, sample: Any) -> Any:
    if not where:
        return sample
    first, *rest = where
    if isinstance(value, Mapping):
        return {name: _put(one, tuple(rest), sample) if name == first else one for name, one in value.items()}
    return [_put(one, tuple(rest), sample) if at == first else one for at, one in enumerate(value)]


def _may_pass(fault: Any, holes: Collection[Where], loose: Collection[Where]) -> bool:
    """Whether a fault is about the value of a sample, and not about its type.

    Args:
        holes: where samples stand.
        loose: where nothing is known of the type.
    """
    place = tuple(fault.absolute_path)
    if any(place[: len(hole)] == hole for hole in loose):
        return True
    within = any(place[: len(hole)] == hole for hole in holes)
    if within and fault.validator in _OF_VALUES:
        return True
    if fault.validator not in ("anyOf", "oneOf", "allOf"):
        return False
    branches: dict[Any, list[Any]] = {}
    for inner in fault.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    if not branches:
        return within
    return any(all(_may_pass(inner, holes, loose) for inner in some) for some in branches.values())


def _with_needs(step: Step) -> Step:
    try:
        needs = tuple(dict.fromkeys((*step.depends, *drawn_from(step))))
    except BadPlan as error:
        raise BadPlan(f"{step.id}: {error}") from error
    return step if needs == step.depends else step.model_copy(update={"depends": needs})


def _acyclic(steps: Iterable[Step]) -> None:
    try:
        TopologicalSorter({step.id: step.depends for step in steps}).prepare()
    except CycleError as error:
        raise BadPlan("its steps wait for each other") from error


def _check_step(step: Step, tools: Collection[str], waves: dict[str, int], done: Collection[str], works: bool) -> None:
    if step.tool is not None and step.question is not None:
        raise BadPlan(f"{step.id} has both a tool and a question")
    if step.tool is None and step.question is None and not works:
        raise BadPlan(f"{step.id} names no tool")
    if step.tool is None and step.question is None and step.each is not None:
        raise BadPlan(f"{step.id}, each: only a call or a question is made once for each item")
    if step.tool is not None and step.tool not in tools:
        raise BadPlan(f"{step.id} names an unknown tool")
    for needed in step.depends:
        if needed not in waves and needed not in done:
            raise BadPlan(f"{step.id} depends on a step that there is not")
        if needed in waves and waves[needed] >= step.wave:
            raise BadPlan(f"{step.id} stands no later than what it depends on")


def _renumber_waves(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps in the order of their waves, these counted from 1; a wave that is too wide goes on in the next one."""
    found: list[Step] = []
    wave = 0
    for number in sorted({step.wave for step in steps}):
        same = [step for step in steps if step.wave == number]
        for at in range(0, len(same), MAX_OF_WAVE):
            wave += 1
            found += [step.model_copy(update={"wave": wave}) for step in same[at : at + MAX_OF_WAVE]]
    return tuple(found)


Remaining = tuple[Step, ...]


def next_wave(remaining: Remaining) -> tuple[Remaining, Remaining]:
    """The steps of the lowest wave, and those that are left behind it."""
    first = min(step.wave for step in remaining)
    return tuple(step for step in remaining if step.wave == first), tuple(step for step in remaining if step.wave != first)


def missing_needs(step: Step, ended_well: Collection[str]) -> tuple[str, ...]:
    """What a step needs and did not get."""
    return tuple(needed for needed in step.depends if needed not in ended_well)


def rename_steps(tail: Plan, taken: Collection[str]) -> Plan:
    """A new tail whose steps have ids of their own, so that no journalled step is taken for another."""
    names = _names(tail, taken)
    return tail.model_copy(update={"steps": tuple(_renamed(step, names) for step in tail.steps)})


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    def of(one: Each | When | None) -> Any:
        return one.model_copy(update={"of": names.get(one.of, one.of)}) if one is not None else None

    renamed: dict[str, Any] = {
        "id": names[step.id],
        "depends": tuple(names.get(needed, needed) for needed in step.depends),
        "each": of(step.each),
        "when": of(step.when),
        "arguments": _with_names(step.arguments, names),
        "question": _with_names(step.question, names),
    }
    return step.model_copy(update=renamed)


def _with_names(value: Any, names: Mapping[str, str]) -> Any:
    """A value whose placeholders name steps as they are called now."""
    match value:
        case str():
            return "".join(one if isinstance(one, str) else json.dumps(_stated(one, names)) for one in _split_text(value))
        case Mapping():
            if (found := _placeholder(value)) is not None:
                return _stated(found, names)
            return {name: _with_names(member, names) for name, member in value.items()}
        case list() | tuple():
            return [_with_names(member, names) for member in value]
        case _:
            return value


def _stated(one: Placeholder, names: Mapping[str, str]) -> dict[str, str]:
    return {_ITEM: one.path} if one.of is None else {_OF: names.get(one.of, one.of), "path": one.path}


def _names(tail: Plan, taken: Collection[str]) -> Mapping[str, str]:
    used, names = set(taken), dict[str, str]()
    for step in tail.steps:
        name, nth = step.id, 1
        while name in used and step.id not in names:
            nth += 1
            name = f"{step.id[:60]}.{nth}"
        names[step.id] = name
        used.add(name)
    return names


_WORD = re.compile(r"[^\W\d_]{3,}|\d+")
"""Numbers count however short they are: a plan for part 12 is none for part 15."""
_SMALL = frozenset(
    "a an and are by do for from how in is it of on or our please the their to up us was we what which with".split()
)


def goal_signature(goal: str, agent: str) -> str:
    """What goals have in common that one decomposition is good for: their words, without order, case and small words."""
    words = sorted({word for word in _WORD.findall(goal.casefold()) if word not in _SMALL})
    return hashlib.sha256("\x00".join((agent, *words)).encode()).hexdigest()


def is_held_out(tenant: str, user: str, signature: str, share: float) -> bool:
    """Whether a user's goals of this signature are planned without strategies. The same goal always is, or always is not.

    Args:
        share: of all goals, 0 to 1.
    """
    digest = hashlib.sha256("\x00".join(("strategies", tenant, user, signature)).encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def usable_plan(plan: Plan | None, tools: tuple[str, ...]) -> Plan | None:
    """A kept plan whose tools are all at hand still."""
    if plan is None or any(step.tool is not None and step.tool not in tools for step in plan.steps):
        return None
    return plan


@dataclass(frozen=True)
class ToolResult:
    """What a call of a tool gave. What went wrong with it is its outcome too."""

    ok: bool
    text: str = ""
    """What it gave, in the form that models are told."""
    answer: dict[str, Any] | None = None
    """What it gave, as JSON; absent where it failed."""
    code: str | None = None
    """Why it failed."""
    tools: tuple[str, ...] = ()
    """The tools that were called, in their order."""


class FoundThing(Message):
    """One thing that an answer is about, with what was read of it."""

    model_config = ConfigDict(extra="allow")

    id: str
    type: str = ""
    """Its type in the ontology or the constitution."""
    title: str = ""


class AskedThing(Message):
    """One thing that a question asks for beside the set that it is about."""

    words: str
    """As the question has it."""
    labels: tuple[str, ...]
    """What a column, a figure or a sentence is called that holds it; one of them is enough."""


class QuestionAnswer(Message):
    """The answer to the question of a step."""

    text: str
    """The answer in words, as a person would be told it: Markdown."""
    read: Literal["twin", "constitution", "passages"]
    """Where it was read: by a plan over the twin or the constitution, or quoted from documents, memory or texts."""
    empty: bool = False
    """Whether nothing fits the question, which was understood and read completely."""
    total: int | None = None
    """How many things fit, where they were counted; more than `items` holds where those were cut."""
    items: tuple[FoundThing, ...] = ()
    """The things that fit, as far as the question asks for things: what a later step goes through."""
    figures: tuple[FigureRow, ...] = ()
    tables: tuple[TableBlock, ...] = ()
    charts: tuple[Visualization, ...] = ()
    sources: tuple[SourceRow, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader has to know beside the answer, a sentence each."""
    unexplained: tuple[str, ...] = ()
    """Words of the question that nothing explains, and that the answer leaves out."""
    asked: tuple[AskedThing, ...] = ()
    """Properties, figures and groups that the question asks for, whether the answer holds them or not."""
    left_out: tuple[str, ...] = ()
    """Those of them, in the question's words, that were understood and are not answered."""
    lacking: tuple[str, ...] = ()
    """Those that were looked for and are on record of none of the things."""
    by_words: bool = False
    """Whether rules chose the things in the platform's own records by what the question's words mean, or by names that mean
    nothing else: no title, value or text that somebody wrote then gave those words another sense."""
    confidence: float = Field(default=0.0, ge=0.0, le=1.0)


Ask = Callable[[str, str], Awaitable[ToolResult]]
"""Asks the question of a step. It takes the name of the journalled step, unique in the turn, and the question; the `answer` of
what it gives is a `QuestionAnswer`. A question that is not understood fails with the code `task.not_understood`."""


class Caller(Protocol):
    """Calls tools for a task: behind the policy, journalled."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools at hand."""

    async def call(self, step: str, name: str, arguments: dict[str, Any], *, ours: bool = False) -> ToolResult:
        """Make one call, or read what it gave. A failure is an outcome.

        Args:
            step: name of the journalled step, unique in the turn.
            name: the tool's.
            arguments: as the plan has them.
        """


@dataclass(frozen=True)
class StepResult:
    step: Step
    outcome: ToolResult
    ms: int = 0


@dataclass(frozen=True)
class Strategy:
    """How a task that went well was done."""

    id: str
    goal: str
    approach: str
    tools_used: tuple[str, ...] = ()
    avoid: str = ""
    labels: tuple[Label, ...] = UNKNOWN
    """Where it comes from."""


class Lesson(Message):
    """What can be learnt of a task: kept in its journal until somebody verifies its outcome, and gone with it."""

    task_id: str
    conversation_id: str
    agent: str
    goal: str
    signature: str
    """What goals that its plan is good for have in common."""
    plan: Plan
    """The steps that were made."""
    approach: str
    tools_used: tuple[str, ...] = ()
    avoid: str = ""
    score: float | None = None
    """The critic's."""
    succeeded: bool
    """Whether it ended before a limit did, and something of it worked."""
    labels: tuple[Label, ...] = UNKNOWN
    """Where what it read comes from."""
    ontology: str = ""
    """The version of the tenant's ontology, where it was at hand."""


@dataclass(frozen=True)
class GoalKnowledge:
    """What a decomposition is made with."""

    goal: str
    tools: tuple[str, ...]
    strategies: tuple[Strategy, ...] = ()
    offered: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    """Name, description and arguments' schema of each tool, for who has to be told."""
    contracts: Contracts = field(default_factory=dict, compare=False)
    """The tools by name, whose schemas plans are held to."""
    template: Plan | None = None
    """A decomposition that worked for a goal like this."""
    refused: Fault | None = None
    """The plan that was made of it before, and what is wrong with it."""
    ahead: str = ""
    """What was thought before the work began."""
    event: StartingEvent | None = None
    """The event that started the task. Its titles are data."""
    worked: tuple[StepResult, ...] = ()
    """For a new plan: what has worked."""
    failed: tuple[StepResult, ...] = ()
    """For a new plan: what has failed."""
    left_out: tuple[StepResult, ...] = ()
    """Steps whose condition did not hold, or that draw from such a step: they are no failures."""
    remaining: tuple[Step, ...] = ()
    """For a new plan: what was still to be done."""


class Verdict(Message):
    """Whether the remaining steps still make sense."""

    revise: bool
    reason: str = Field(default="", max_length=2_000)


class Criticism(Message):
    """What a critic says of a finished task."""

    score: float | None = None
    """0 to 1; what is no such number is none."""
    reason: str = Field(default="", max_length=2_000)

    @field_validator("score", mode="before")
    @classmethod
    def _in_range(cls, given: object) -> object:
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
            return None
        return given


class WrittenReport(Message):
    """A report."""

    title: str = Field(min_length=1, max_length=300)
    text: str = ""
    """Markdown, from who gives no blocks; else it is rendered from them."""
    blocks: tuple[ReportBlock, ...] = Field(default=(), max_length=MAX_BLOCKS)
    charts: tuple[Visualization, ...] = ()
    used: tuple[str, ...] = ()
    """Ids of the steps that it rests on."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.text and not self.blocks:
            raise ValueError("a report has text or blocks")
        return self


_RAW = re.compile(r"""[{\[]\s*[{]?\s*["'][^"'\n]{1,100}["']\s*:""")
"""How an object begins that a program wrote: JSON, or a value of a language that writes alike."""


def holds_raw_data(text: str) -> bool:
    """Whether a text shows data as programs write it, in place of sentences or a table."""
    return _RAW.search(text) is not None


@runtime_checkable
class Planner(Protocol):
    """A reasoner that can plan tasks, too. One that cannot leaves them to rules. Each call may raise `CallFailed`."""

    async def decompose(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Plan]:
        """Make a plan for a goal, or a new one for what is left of it."""

    async def evaluate(self, turn: TurnContext, known: GoalKnowledge) -> Answer[Verdict]:
        """Say whether what is left still makes sense; by the fast model."""

    async def criticise(self, turn: TurnContext, known: GoalKnowledge, written: WrittenReport) -> Answer[Criticism]:
        """Say how well the goal was met, 0 to 1."""

    async def write(self, turn: TurnContext, known: GoalKnowledge) -> Answer[WrittenReport]:
        """Write the report."""


class Strategies(Protocol):
    """Approaches that worked, kept by the memory."""

    async def recall(self, who: Principal, goal: str, n: int, agent: str, tools: tuple[str, ...]) -> tuple[Strategy, ...]:
        """Those for goals like this one, best first. Never raises: without memory there are none.

        Args:
            agent: who will use them.
            tools: those at hand; a strategy that needs another one is none.
        """

    async def record(self, who: Principal, lesson: Lesson, verified: Verified) -> None:
        """Keep how a task was done whose result was accepted. Raises `ServiceError`."""

    async def outcome(self, who: Principal, task_id: str, ids: tuple[str, ...], verified: Verified) -> None:
        """Say what came of a task, of the strategies that it used and of the one learnt from it. Raises `ServiceError`."""


class Templates(Protocol):
    """Decompositions that worked, apart from strategies."""

    async def template(self, who: Principal, signature: str, *, counted: bool = True) -> Plan | None:
        """The plan that worked for goals of this signature; `counted`: whether that it was asked for is."""

    async def keep_template(self, claim: Claim, signature: str, plan: Plan) -> None:
        """Keep a plan; the same signature again makes its next version. Raises `LostClaim`."""


class TaskStates(Protocol):
    """What is seen of tasks, and what their journals hold."""

    async def keep_state(self, claim: Claim, state: TaskState) -> None:
        """Write down how far a task is. Raises `LostClaim`."""

    async def journalled(self, claim: Claim) -> frozenset[str]:
        """Names of the steps that have a result."""


class TaskStore(Templates, TaskStates, Protocol):
    """Both."""


@dataclass(frozen=True)
class WaitOrder:
    """What a task is to wait for. `due`: the date, or when the question runs out."""

    step: str
    kind: Literal["date", "person"]
    due: datetime
    question: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class EndedWait:
    """A wait that is over. `answer`: what the person said; `None` where the time came, or nobody answered."""

    due: datetime
    answer: str | None


class TaskWaits(Protocol):
    """Where tasks wait without a slot."""

    async def found(self, claim: Claim, step: str) -> EndedWait | None:
        """How the wait of a step ended; `None` where it did not begin yet."""

    async def begin(self, claim: Claim, wait: WaitOrder) -> None:
        """Write down what is waited for and let the turn wait, in one transaction. Raises `LostClaim`."""

    async def waited(self, claim: Claim) -> float:
        """Seconds for which the task has waited for dates, for people, and for what did not answer."""
