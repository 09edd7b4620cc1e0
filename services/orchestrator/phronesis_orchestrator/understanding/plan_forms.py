"""Plans as a model writes them: the form of one kind, narrowed to a tenant's names, and a plan from what was written.

A form is the JSON schema of the plan's own class. What stands in it by name (types, properties, relationships, years) is a
closed list, things are said in words, and what code can tell by itself (levels, ids, labels) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from phronesis_contracts.twin import Level

from .lexicon import VocabularyView
from .plan import COMMON, Aggregate, Change, Compare, Describe, EntityRef, Gaps, Part, Plan, Rank, Relate, Select

KINDS: Mapping[str, type[Part]] = {
    "select": Select,
    "aggregate": Aggregate,
    "rank": Rank,
    "compare": Compare,
    "change": Change,
    "relate": Relate,
    "gaps": Gaps,
    "describe": Describe,
}
"""The kinds of plan that a model may make: those that are about data."""
_LEFT_OUT = frozenset({"kind", "level", "words", "where"})
_LISTS: Mapping[str, str] = {
    **dict.fromkeys(("type", "to"), "Type"),
    **dict.fromkeys(("property", "by", "show", "properties"), "Property"),
    **dict.fromkeys(("via", "relationship"), "Relationship"),
    **dict.fromkeys(("years", "year", "since", "until"), "Year"),
    "chain": "Chain",
}
"""The list that a field takes its values from."""
_VALUE = {
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
        {"type": "null"},
    ]
}
_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)
_SHOWN = 8
"""Values that a fault lists."""


class Misfit(ValueError):
    """What was written is no plan over this ontology; the text says why, for whoever wrote it."""


@dataclass(frozen=True)
class Names:
    """What a form may name."""

    types: tuple[str, ...]
    properties: tuple[str, ...]
    relationships: tuple[str, ...] = ()
    chains: tuple[str, ...] = ()
    years: tuple[int, ...] = ()

    def lists(self) -> dict[str, dict[str, Any]]:
        """The closed lists by name; those without a member are left out."""
        listed: dict[str, tuple[str | int, ...]] = {
            "Type": self.types,
            "Property": tuple(dict.fromkeys((*self.properties, "name", "year"))),
            "Relationship": self.relationships,
            "Chain": self.chains,
            "Year": self.years,
        }
        kinds = {"Year": "integer"}
        return {name: {"type": kinds.get(name, "string"), "enum": list(of)} for name, of in listed.items() if of}


def form_of(kind: str, names: Names) -> dict[str, Any]:
    """The schema of a kind of plan, in the form that strict modes ask for: everything required, nothing else."""
    whole = KINDS[kind].model_json_schema()
    lists = names.lists()
    named: dict[str, Any] = {}

    def narrow(node: Mapping[str, Any], field: str) -> dict[str, Any]:
        if "$ref" in node:
            name = str(node["$ref"]).rpartition("/")[2]
            if name == "EntityRef":
                return {"type": "string"}
            if name not in named:
                named[name] = {}
                named[name] = form(whole["$defs"][name])
            return {"$ref": f"#/$defs/{name}"}
        if "anyOf" in node:
            return {"anyOf": [narrow(one, field) for one in node["anyOf"]]}
        if node.get("type") == "array":
            return {"type": "array", "items": narrow(node.get("items", {"type": "string"}), field)}
        if node.get("type") == "null":
            return {"type": "null"}
        if field in _LISTS and _LISTS[field] in lists:
            named[_LISTS[field]] = lists[_LISTS[field]]
            return {"$ref": f"#/$defs/{_LISTS[field]}"}
        if "enum" in node or "const" in node:
            return {"type": "string", "enum": list(node.get("enum", [node.get("const")]))}
        return {"type": node.get("type", "string")}

    def form(node: Mapping[str, Any]) -> dict[str, Any]:
        kept = {
            field: _VALUE if field == "value" and "anyOf" in told else narrow(told, field)
            for field, told in node["properties"].items()
            if field not in _LEFT_OUT and not (field in _LISTS and _LISTS[field] not in lists)
        }
        return {"type": "object", "properties": kept, "required": list(kept), "additionalProperties": False}

    return {**form(whole), "$defs": named}


@dataclass(frozen=True)
class Decoder:
    """Makes plans of what was written.

    Args:
        view: the tenant's vocabulary.
        thing: the thing of a type that words name; `None` for any type. Raises `Misfit`.
        level: the level at which things of a type are meant.
    """

    view: VocabularyView
    thing: Callable[[str, str | None], EntityRef]
    level: Callable[[str], Level | None]

    def plan(self, kind: str, told: Mapping[str, Any]) -> Plan:
        """The plan. Raises `Misfit`."""
        if kind not in KINDS:
            raise Misfit(f"there is no kind of plan {kind}")
        given = _without_nulls(told)
        given.pop("kind", None)
        subject = given.get("of", {}).get("type") if isinstance(given.get("of"), dict) else None
        try:
            plan = _PLAN.validate_python({**self._filled(given, subject), "kind": kind})
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False, include_input=False)[:4]
            raise Misfit("; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in faults)) from error
        check(plan, self.view)
        return plan

    def _filled(self, given: dict[str, Any], subject: str | None) -> dict[str, Any]:
        """What was written, with things for their words and values for those of the store."""
        found: dict[str, Any] = {}
        for field, value in given.items():
            match field:
                case "of":
                    found[field] = self._selection(value)
                case "sides":
                    found[field] = [self._filled(one, None) if isinstance(one, dict) else one for one in _list(value)]
                case "source" | "target":
                    found[field] = self._thing(value, None)
                case "entities":
                    found[field] = [self._thing(one, None) for one in _list(value)]
                case "expect" if isinstance(value, dict):
                    things = _list(given.get("entities"))
                    owner = self._thing(things[0], None).type if things else subject
                    found[field] = self._filter(value, owner or "")
                case "expect":
                    found[field] = self._thing(value, subject)
                case _:
                    found[field] = value
        return found

    def _selection(self, value: object) -> object:
        if not isinstance(value, dict):
            return value
        type = str(value.get("type", ""))
        found = dict(value)
        found["filters"] = [self._filter(one, type) if isinstance(one, dict) else one for one in _list(value.get("filters"))]
        found["among"] = [self._thing(one, type) for one in _list(value.get("among"))]
        if not found["among"] and (level := self.level(type)) is not None:
            found["level"] = level
        return found

    def _thing(self, said: object, type: str | None) -> EntityRef:
        if not isinstance(said, str) or not said.strip():
            raise Misfit("a thing is named by its name")
        return self.thing(said, type)

    def _filter(self, given: dict[str, Any], type: str) -> dict[str, Any]:
        """A condition on things or values that there are. Raises `Misfit`."""
        one = dict(given)
        op, owner = one.get("op", "="), str(one.get("to") or type)
        if op in ("linked", "unlinked"):
            return {**one, "property": "id", "value": None}
        if op in ("known", "unknown"):
            return {**one, "value": None}
        name, value = str(one.get("property", "")), one.get("value")
        if value is None:
            raise Misfit(f"the condition on {name} has no value")
        if name in ("id", "name") and op in ("=", "<>", "in"):
            refs = [self._thing(str(each), owner) for each in _list(value)]
            ids = list(dict.fromkeys(ref.id for ref in refs))
            words = ", ".join(dict.fromkeys(ref.name for ref in refs))
            alone = len(ids) == 1
            return {
                **one,
                "property": "id",
                "op": op if op == "<>" or not alone else "=",
                "value": ids[0] if alone else ids,
                "words": words,
            }
        declared = self.view.property(owner, name)
        if declared is None or op == "contains":
            return one
        if declared.kind == "string" and op in ("=", "<>", "in"):
            values = [self._value(owner, name, str(each)) for each in _list(value)]
            return {
                **one,
                "value": values[0] if len(values) == 1 else values,
                "op": op if len(values) == 1 and op != "in" else ("in" if len(values) > 1 else "="),
                "words": ", ".join(values),
            }
        if declared.kind == "number":
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise Misfit(f"{name} is compared with a number{f' in {declared.unit}' if declared.unit else ''}")
            return {**one, "value": float(value)}
        return one

    def _value(self, type: str, name: str, said: str) -> str:
        """A value as the store has it. Raises `Misfit`: there is none like it."""
        stored = self.view.known.get((type, name))
        declared = self.view.property(type, name)
        choices = [*(declared.choices if declared else ()), *(one.value for one in (stored.values if stored else ()))]
        for one in choices:
            if one.casefold() == said.strip().casefold():
                return one
        shown = ", ".join(list(dict.fromkeys(choices))[:_SHOWN])
        raise Misfit(f"{name} is never {said!r}; there are: {shown}")


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _without_nulls(value: Any) -> Any:
    """Without what was left open: the plan's own defaults stand there."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def check(plan: Plan, view: VocabularyView) -> None:
    """Hold a plan against the ontology. Raises `Misfit`."""
    match plan:
        case Select():
            _check_set(plan.of.type, plan.of.filters, view)
            _properties(plan.of.type, plan.show, view)
        case Aggregate():
            _check_figure(plan, view)
        case Compare():
            for side in plan.sides:
                if side.group_by:
                    raise Misfit("a side of a comparison has no groups")
                _check_figure(side, view)
            if len({(side.measure, side.property) for side in plan.sides}) > 1:
                raise Misfit("all sides of a comparison measure the same")
        case Rank():
            _check_set(plan.of.type, plan.of.filters, view)
            if (plan.by is None) is (plan.via is None):
                raise Misfit("a ranking goes by a property or by a relationship, and by one of them alone")
            if plan.by is not None:
                declared = view.property(plan.of.type, plan.by)
                if declared is None or not (declared.kind in ("number", "date") or declared.choices):
                    raise Misfit(f"{plan.of.type} cannot be ranked by {plan.by}")
            else:
                _joined(plan.of.type, plan.via, plan.to, view)
        case Change():
            _check_set(plan.of.type, plan.of.filters, view)
            if plan.since >= plan.until:
                raise Misfit("a change goes from an earlier year to a later one")
            if plan.what in ("changed", "rose", "fell"):
                if plan.property is None:
                    raise Misfit("it is not said which property changed")
                _properties(plan.of.type, (plan.property,), view)
        case Relate():
            if plan.relationship is not None:
                _joined(plan.source.type, plan.relationship, plan.to, view)
        case Gaps():
            if not plan.entities and plan.of is None:
                raise Misfit("gaps are looked for around things or in a set")
            of = plan.of.type if plan.of is not None else plan.entities[0].type
            _check_set(of, plan.of.filters if plan.of is not None else (), view)
            _properties(of, plan.properties, view)
        case Describe():
            type = plan.entities[0].type
            _properties(type, plan.properties, view)
            _check_set(type, (plan.expect,) if plan.expect is not None else (), view)


def _check_figure(plan: Aggregate, view: VocabularyView) -> None:
    type = plan.of.type
    _check_set(type, plan.of.filters, view)
    if plan.measure != "count":
        declared = view.property(type, plan.property or "")
        if declared is None:
            raise Misfit(f"{plan.measure} of what? {type} has no property {plan.property}")
        if declared.kind != "number" and not (declared.kind == "date" and plan.measure in ("min", "max")):
            raise Misfit(f"{plan.property} is no number, and has no {plan.measure}")
    for by in plan.group_by:
        owner = type if by.via is None else (by.to or type)
        if by.via is not None:
            _joined(type, by.via, by.to, view)
        _properties(owner, (by.property,), view)


def _check_set(type: str, filters: Sequence[Any], view: VocabularyView) -> None:
    if type not in view.types:
        raise Misfit(f"there is no type {type}")
    for one in filters:
        if one.via is not None:
            _joined(type, one.via, one.to, view)
            if one.to is None:
                raise Misfit(f"a condition by way of {one.via} says the type at its other end (`to`)")
        _properties(one.to if one.via is not None else type, (one.property,), view)


def _properties(type: str, names: Sequence[str], view: VocabularyView) -> None:
    for name in names:
        if view.property(type, name) is None and name not in COMMON:
            known = ", ".join(one.name for one in view.properties(type))
            raise Misfit(f"{type} has no property {name}; it has: {known}")


def _joined(type: str, via: str | None, to: str | None, view: VocabularyView) -> None:
    one = view.relationships.get(via or "")
    ends = (*one.sources, *one.targets) if one is not None else ()
    if type not in ends or (to is not None and to not in ends):
        ways = ", ".join(way.name for way, _ in view.between(type, to)) if to else ""
        raise Misfit(f"{via} does not join {type} and {to}" + (f"; these do: {ways}" if ways else ""))
