"""The Cypher of surveys: made of the ontology's names alone, every value a parameter, every node held to the tenant."""

from __future__ import annotations

from dataclasses import dataclass, field

from phronesis_contracts import BadRequest
from phronesis_contracts.twin import GroupBy, Survey, Where

from ..checks import nearest
from ..ontology import Kind, NodeType, Ontology
from .survey_values import COMMON, compared, declared, folds, joined_type, node_type

_BACK = {"group": "", "value": "", "-group": " DESC", "-value": " DESC"}


@dataclass
class SurveyStatement:
    """A survey as two statements over the same nodes: its rows, and how many nodes it is about."""

    rows: str
    total: str
    parameters: dict[str, object]
    shown: tuple[str, ...] = ()
    """For a list: the properties in each row, `p0` the first."""


@dataclass
class _Building:
    ontology: Ontology
    survey: Survey
    kind: NodeType
    parameters: dict[str, object] = field(default_factory=dict)

    def given(self, value: object) -> str:
        """A parameter of its own for a value."""
        name = f"v{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"


def statement(ontology: Ontology, survey: Survey) -> SurveyStatement:
    """The statements of a survey; they take its tenant as `$tenant` beside the parameters.

    Raises:
        BadRequest: it names what the ontology has not, or asks for what does not go together; `field` is the path to it.
    """
    building = _Building(ontology, survey, node_type(ontology, survey.type, "type"))
    fits = _fits(building)
    total = f"MATCH (n:{building.kind.name}) WHERE {fits} RETURN count(n) AS total"
    if survey.measure == "list":
        rows, shown = _listed(building, fits)
        return SurveyStatement(rows, total, building.parameters, shown)
    return SurveyStatement(_grouped(building, fits), total, building.parameters)


def _fits(building: _Building) -> str:
    conditions = ["n.tenant = $tenant"]
    if building.survey.years:
        conditions.append(f"n.year IN {building.given(list(building.survey.years))}")
    if building.survey.level is not None:
        conditions.append(f"n.level = {building.given(building.survey.level.value)}")
    conditions += [_condition(building, one, f"where.{i}") for i, one in enumerate(building.survey.where)]
    return " AND ".join(conditions)


def _condition(building: _Building, one: Where, path: str) -> str:
    other = joined_type(building.ontology, building.kind, one.via, one.to, path)
    kind, node = (building.kind, "n") if other is None else (other, "m")
    found = declared(kind, one.property, f"{path}.property")
    value = compared(one, found, path)
    stated = f"{node}.{found.name}"
    if one.op == "unknown":
        test = f"{stated} IS NULL" if other is None else f"{stated} IS NOT NULL"
    else:
        folded = f"toLower({stated})" if one.op == "contains" or folds(found) else stated
        test = f"{folded} {one.op.upper()} {building.given(value)}"
    if other is None:
        return test
    # What no joined node states is unknown, whether there is such a node or not.
    no = "NOT " if one.op == "unknown" else ""
    return f"{no}EXISTS {{ MATCH (n)-[:{one.via}]-(m:{kind.name}) WHERE m.tenant = $tenant AND m.year = n.year AND {test} }}"


def _grouped(building: _Building, fits: str) -> str:
    survey = building.survey
    if survey.after is not None or survey.show:
        raise BadRequest("only a list has pages and properties to show", field="after" if survey.after else "show")
    lines = [f"MATCH (n:{building.kind.name}) WHERE {fits}"]
    groups = []
    for i, by in enumerate(survey.group_by):
        groups.append(f"{_group(building, lines, by, i)} AS g{i}")
    lines.append(f"WITH DISTINCT {', '.join(['n', *groups])}")
    keys = [f"g{i}" for i in range(len(groups))]
    measured = ", ".join([*keys, f"{_measure(building)} AS value", f"{_known(building, keys)} AS known", "count(n) AS nodes"])
    back = _BACK[survey.order]
    by_group = [part for key in keys for part in (f"{key} IS NULL", f"{key}{back if 'group' in survey.order else ''}")]
    order = by_group if "group" in survey.order else ["value IS NULL", f"value{back}", *by_group]
    ordered = f" ORDER BY {', '.join(order)}" if order else ""
    return "\n".join([*lines, f"RETURN {measured}{ordered} LIMIT $limit"])


def _group(building: _Building, lines: list[str], by: GroupBy, number: int) -> str:
    path = f"group_by.{number}"
    other = joined_type(building.ontology, building.kind, by.via, by.to, path)
    node = "n"
    if other is not None:
        node = f"m{number}"
        lines.append(f"OPTIONAL MATCH (n)-[:{by.via}]-({node}:{other.name})")
        lines.append(f"WHERE {node}.tenant = $tenant AND {node}.year = n.year")
    if by.property == "year" and other is None:
        return "n.year"
    found = declared(other or building.kind, by.property, f"{path}.property")
    if found.kind is Kind.TEXT and found is not COMMON["id"]:
        raise BadRequest("long texts make no groups", field=f"{path}.property")
    return f"{node}.{found.name}"


def _measure(building: _Building) -> str:
    measure, of = building.survey.measure, building.survey.of
    if measure == "count":
        return "count(n)"
    kinds = (Kind.NUMBER, Kind.DATE) if measure in ("min", "max") else (Kind.NUMBER,)
    fitting = [name for name, each in building.kind.properties.items() if each.kind in kinds]
    if of is None or of not in fitting:
        raise BadRequest(f"`{measure}` needs a property to take{nearest(of or '', fitting)}", field="of")
    # The sum of nothing known is not zero.
    return f"CASE WHEN count(n.{of}) = 0 THEN null ELSE {measure}(n.{of}) END"


def _known(building: _Building, keys: list[str]) -> str:
    of = building.survey.of
    if of is not None:
        return f"count(n.{declared(building.kind, of, 'of').name})"
    every = " AND ".join(f"{key} IS NOT NULL" for key in keys)
    return f"count(CASE WHEN {every} THEN n END)" if keys else "count(n)"


def _listed(building: _Building, fits: str) -> tuple[str, tuple[str, ...]]:
    survey, back = building.survey, _BACK[building.survey.order]
    if survey.group_by:
        raise BadRequest("a list has no groups", field="group_by")
    shown = [declared(building.kind, name, f"show.{i}").name for i, name in enumerate(survey.show)]
    order = f"n.id{back}, n.year{back}"
    if "value" in survey.order:
        if survey.of is None or survey.after is not None:
            raise BadRequest("a list by value needs `of`, and has no pages", field="of" if survey.of is None else "after")
        of = declared(building.kind, survey.of, "of").name
        order = f"n.{of} IS NULL, n.{of}{back}, n.id, n.year"
        shown.append(of)
    elif survey.after is not None:
        fits = f"{fits} AND {_beyond(building, survey.after, '<' if back else '>')}"
    shown = list(dict.fromkeys(name for name in shown if name not in ("id", "name")))
    columns = ", ".join(["n.id AS id", "n.name AS name", "n.year AS year", *(f"n.{x} AS p{i}" for i, x in enumerate(shown))])
    return f"MATCH (n:{building.kind.name}) WHERE {fits} RETURN {columns} ORDER BY {order} LIMIT $limit", tuple(shown)


def _beyond(building: _Building, after: str, sign: str) -> str:
    """One id may stand in several years, so that a page can end between two of them."""
    id, slash, year = after.rpartition("/")
    if not slash or not (len(year) == 4 and year.isdecimal()):
        return f"n.id {sign} {building.given(after)}"
    at = building.given(id)
    return f"(n.id {sign} {at} OR n.id = {at} AND n.year {sign} {building.given(int(year))})"
