"""The Cypher of surveys: made of the ontology's names alone, every value a parameter, every node held to the tenant."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from phronesis_contracts import BadRequest
from phronesis_contracts.twin import GroupBy, Level, Survey, Where

from .ontology import Kind, NodeType, Ontology, Property, check_value, suggest_nearest

COMMON = {
    "id": Property("id", Kind.TEXT),
    "name": Property("name", Kind.STRING),
    "level": Property("level", Kind.STRING, choices=tuple(Level)),
    "quarter": Property("quarter", Kind.STRING, choices=("Q1", "Q2", "Q3", "Q4")),
}
"""What every node has beside its year and what its type declares. An id is compared as it stands."""
Value = str | float | list[str | float]


def find_node_type(ontology: Ontology, name: str, path: str) -> NodeType:
    """A declared node type. Raises `BadRequest`: there is none of this name."""
    if name not in ontology.nodes:
        raise BadRequest(f"no such node type{suggest_nearest(name, ontology.nodes)}", field=path)
    return ontology.nodes[name]


def find_property(kind: NodeType, name: str, path: str) -> Property:
    """A property that nodes of the type have. Raises `BadRequest`: there is none of this name."""
    found = kind.properties.get(name) or COMMON.get(name)
    if found is None:
        raise BadRequest(f"{kind.name} has no such property{suggest_nearest(name, [*kind.properties, *COMMON])}", field=path)
    return found


def find_joined_types(
    ontology: Ontology, kind: NodeType, via: str, to: str | None, path: str, forward: bool | None = None
) -> tuple[str, ...]:
    """The node types at the other end of a relationship, or the one asked for. Raises `BadRequest`: there is none such."""
    if via not in ontology.relationships:
        raise BadRequest(f"no such relationship type{suggest_nearest(via, ontology.relationships)}", field=f"{path}.via")
    relationship = ontology.relationships[via]
    others = [
        t
        for t in ontology.nodes
        if (forward is not False and relationship.joins(kind.name, t))
        or (forward is not True and relationship.joins(t, kind.name))
    ]
    if not others:
        raise BadRequest(f"{kind.name} has no {via}", field=f"{path}.via")
    if to is not None and to not in others:
        raise BadRequest(f"{via} does not join {kind.name} and {to[:60]}{suggest_nearest(to, others)}", field=f"{path}.to")
    return tuple(others) if to is None else (to,)


def find_joined_type(
    ontology: Ontology, kind: NodeType, via: str | None, to: str | None, path: str, forward: bool | None = None
) -> NodeType | None:
    """The node type at the other end of a relationship; `None` where none is asked for. Raises `BadRequest`."""
    if via is None:
        if to is not None:
            raise BadRequest("without `via` there is nothing that leads there", field=f"{path}.to")
        return None
    others = find_joined_types(ontology, kind, via, to, path, forward)
    if to is None:
        raise BadRequest(f"`via` needs the node type that it leads to{suggest_nearest('', others)}", field=f"{path}.to")
    return ontology.nodes[to]


def comparison_value(one: Where, found: Property, path: str) -> Value | None:
    """The value to compare with, as stored; text without case, but for ids. Raises `BadRequest`: it does not fit."""
    if one.op in ("unknown", "known"):
        return None
    if one.op == "in":
        if not isinstance(one.value, tuple):
            raise BadRequest("`in` needs a list", field=f"{path}.value")
        return [_to_comparable(found, each, f"{path}.value.{i}") for i, each in enumerate(one.value)]
    if one.op == "contains":
        if not isinstance(one.value, str) or found.kind in (Kind.NUMBER, Kind.DATE):
            raise BadRequest("`contains` is for text", field=f"{path}.op")
        return one.value.lower()
    if one.op in ("<", "<=", ">", ">=") and found.kind not in (Kind.NUMBER, Kind.DATE):
        raise BadRequest(f"`{one.op}` is for numbers and dates", field=f"{path}.op")
    return _to_comparable(found, one.value, f"{path}.value")


def ignores_case(found: Property) -> bool:
    """Whether a property is compared without case: free text is, a member of a closed set stands as it is declared."""
    return found.kind in (Kind.STRING, Kind.TEXT) and not found.choices and found is not COMMON["id"]


def _to_comparable(found: Property, given: object, path: str) -> str | float:
    if found.kind is Kind.NUMBER:
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not math.isfinite(given):
            raise BadRequest("a number is needed", field=path)
        return float(given)
    made = str(check_value(found, given, path))
    return made.lower() if ignores_case(found) else made


_DIRECTIONS = {"group": "", "value": "", "-group": " DESC", "-value": " DESC"}


@dataclass
class SurveyStatement:
    """A survey as two statements over the same nodes: its rows, and how many nodes it is about."""

    rows: str
    total: str
    parameters: dict[str, object]
    shown: tuple[str, ...] = ()
    """For a list: the properties in each row, `p0` the first."""


@dataclass
class _SurveyBuilder:
    ontology: Ontology
    survey: Survey
    kind: NodeType
    parameters: dict[str, object] = field(default_factory=dict)

    def given(self, value: object) -> str:
        """A parameter of its own for a value."""
        name = f"v{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"


def survey_statement(ontology: Ontology, survey: Survey) -> SurveyStatement:
    """The statements of a survey; they take its tenant as `$tenant` beside the parameters.

    Raises `BadRequest`: it names what the ontology has not, or asks for what does not go together; `field` is the path to it.
    """
    building = _SurveyBuilder(ontology, survey, find_node_type(ontology, survey.type, "type"))
    fits = _node_condition(building)
    total = f"MATCH (n:{building.kind.name}) WHERE {fits} RETURN count(n) AS total"
    if survey.measure == "list":
        rows, shown = _list_statement(building, fits)
        return SurveyStatement(rows, total, building.parameters, shown)
    return SurveyStatement(_group_statement(building, fits), total, building.parameters)


def _node_condition(building: _SurveyBuilder) -> str:
    conditions = ["n.tenant = $tenant"]
    if building.survey.years:
        conditions.append(f"n.year IN {building.given(list(building.survey.years))}")
    if building.survey.level is not None:
        conditions.append(f"n.level = {building.given(building.survey.level.value)}")
    conditions += [_where_condition(building, one, f"where.{i}") for i, one in enumerate(building.survey.where)]
    return " AND ".join(conditions)


def _where_condition(building: _SurveyBuilder, one: Where, path: str) -> str:
    if one.via is None and (one.negated or one.forward is not None):
        raise BadRequest("only a condition on linked nodes has it", field=f"{path}.{'negated' if one.negated else 'forward'}")
    if one.op in ("linked", "unlinked"):
        if one.via is None:
            raise BadRequest(f"`{one.op}` needs a relationship type", field=f"{path}.via")
        types = find_joined_types(building.ontology, building.kind, one.via, one.to, path, one.forward)
        return _linked_condition(one, types, "", (one.op == "unlinked") is not one.negated)
    other = find_joined_type(building.ontology, building.kind, one.via, one.to, path, one.forward)
    kind, node = (building.kind, "n") if other is None else (other, "m")
    found = find_property(kind, one.property, f"{path}.property")
    value = comparison_value(one, found, path)
    stated = f"{node}.{found.name}"
    if one.op in ("unknown", "known"):
        # What no joined node states is unknown, whether there is such a node or not.
        test = f"{stated} IS NULL" if other is None and one.op == "unknown" else f"{stated} IS NOT NULL"
    else:
        folded = f"toLower({stated})" if one.op == "contains" or ignores_case(found) else stated
        test = f"{folded} {one.op.upper()} {building.given(value)}"
    if other is None:
        return test
    return _linked_condition(one, (kind.name,), f" AND {test}", (one.op == "unknown") is not one.negated)


def _linked_condition(one: Where, types: tuple[str, ...], test: str, absent: bool) -> str:
    back, forth = "<-" if one.forward is False else "-", "->" if one.forward else "-"
    linked = f"MATCH (n){back}[:{one.via}]{forth}(m:{'|'.join(types)}) WHERE m.tenant = $tenant AND m.year = n.year{test}"
    return f"{'NOT ' if absent else ''}EXISTS {{ {linked} }}"


def _group_statement(building: _SurveyBuilder, fits: str) -> str:
    survey = building.survey
    for name in ("after", "show", "via", "to"):
        if getattr(survey, name):
            raise BadRequest("only a list has pages, properties to show and linked nodes to count", field=name)
    lines = [f"MATCH (n:{building.kind.name}) WHERE {fits}"]
    groups = []
    for i, by in enumerate(survey.group_by):
        groups.append(f"{_group_expression(building, lines, by, i)} AS g{i}")
    lines.append(f"WITH DISTINCT {', '.join(['n', *groups])}")
    keys = [f"g{i}" for i in range(len(groups))]
    measured = ", ".join(
        [
            *keys,
            f"{_measure_expression(building)} AS value",
            f"{_known_expression(building, keys)} AS known",
            "count(n) AS nodes",
        ]
    )
    back = _DIRECTIONS[survey.order]
    by_group = [part for key in keys for part in (f"{key} IS NULL", f"{key}{back if 'group' in survey.order else ''}")]
    order = by_group if "group" in survey.order else ["value IS NULL", f"value{back}", *by_group]
    ordered = f" ORDER BY {', '.join(order)}" if order else ""
    return "\n".join([*lines, f"RETURN {measured}{ordered} LIMIT $limit"])


def _group_expression(building: _SurveyBuilder, lines: list[str], by: GroupBy, number: int) -> str:
    path = f"group_by.{number}"
    other = find_joined_type(building.ontology, building.kind, by.via, by.to, path)
    node = "n"
    if other is not None:
        node = f"m{number}"
        lines.append(f"OPTIONAL MATCH (n)-[:{by.via}]-({node}:{other.name})")
        lines.append(f"WHERE {node}.tenant = $tenant AND {node}.year = n.year")
    if by.property == "year" and other is None:
        return "n.year"
    found = find_property(other or building.kind, by.property, f"{path}.property")
    if found.kind is Kind.TEXT and found is not COMMON["id"]:
        raise BadRequest("long texts make no groups", field=f"{path}.property")
    return f"{node}.{found.name}"


def _measure_expression(building: _SurveyBuilder) -> str:
    measure, of = building.survey.measure, building.survey.of
    if measure == "count":
        return "count(n)"
    kinds = (Kind.NUMBER, Kind.DATE) if measure in ("min", "max") else (Kind.NUMBER,)
    fitting = [name for name, each in building.kind.properties.items() if each.kind in kinds]
    if of is None or of not in fitting:
        raise BadRequest(f"`{measure}` needs a property to take{suggest_nearest(of or '', fitting)}", field="of")
    taken = f"percentileCont(n.{of}, 0.5)" if measure == "median" else f"{measure}(n.{of})"
    # The sum of nothing known is not zero.
    return f"CASE WHEN count(n.{of}) = 0 THEN null ELSE {taken} END"


def _known_expression(building: _SurveyBuilder, keys: list[str]) -> str:
    of = building.survey.of
    if of is not None:
        return f"count(n.{find_property(building.kind, of, 'of').name})"
    every = " AND ".join(f"{key} IS NOT NULL" for key in keys)
    return f"count(CASE WHEN {every} THEN n END)" if keys else "count(n)"


def _list_statement(building: _SurveyBuilder, fits: str) -> tuple[str, tuple[str, ...]]:
    survey, back = building.survey, _DIRECTIONS[building.survey.order]
    if survey.group_by:
        raise BadRequest("a list has no groups", field="group_by")
    shown = [find_property(building.kind, name, f"show.{i}").name for i, name in enumerate(survey.show)]
    order, links = f"n.id{back}, n.year{back}", ""
    if survey.via is not None:
        types = find_joined_types(building.ontology, building.kind, survey.via, survey.to, "")
        links = (
            f" OPTIONAL MATCH (n)-[:{survey.via}]-(m:{'|'.join(types)}) WHERE m.tenant = $tenant AND m.year = n.year"
            " WITH n, count(DISTINCT m) AS linked"
        )
    elif survey.to is not None:
        raise BadRequest("without `via` there is nothing that leads there", field="to")
    if "value" in survey.order and survey.via is not None:
        if survey.of is not None or survey.after is not None:
            raise BadRequest("a list by linked nodes takes no `of`, and has no pages", field="of" if survey.of else "after")
        order = f"linked{back}, n.id, n.year"
    elif "value" in survey.order:
        if survey.of is None or survey.after is not None:
            raise BadRequest("a list by value needs `of`, and has no pages", field="of" if survey.of is None else "after")
        of = find_property(building.kind, survey.of, "of").name
        order = f"n.{of} IS NULL, n.{of}{back}, n.id, n.year"
        shown.append(of)
    elif survey.after is not None:
        fits = f"{fits} AND {_page_condition(building, survey.after, '<' if back else '>')}"
    shown = list(dict.fromkeys(name for name in shown if name not in ("id", "name")))
    columns = ["n.id AS id", "n.name AS name", "n.year AS year", *(f"n.{x} AS p{i}" for i, x in enumerate(shown))]
    columns += ["linked"] if links else []
    listed = f"MATCH (n:{building.kind.name}) WHERE {fits}{links} RETURN {', '.join(columns)} ORDER BY {order} LIMIT $limit"
    return listed, tuple(shown)


def _page_condition(building: _SurveyBuilder, after: str, sign: str) -> str:
    """One id may stand in several years, so that a page can end between two of them."""
    id, slash, year = after.rpartition("/")
    if not slash or not (len(year) == 4 and year.isdecimal()):
        return f"n.id {sign} {building.given(after)}"
    at = building.given(id)
    return f"(n.id {sign} {at} OR n.id = {at} AND n.year {sign} {building.given(int(year))})"
