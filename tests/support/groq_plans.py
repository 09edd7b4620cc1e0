"""What the scripted model says where it is asked for a plan: the right one, or one of many ways to get it wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support.groq_answers import blocks
from tests.support.groq_http import Fault

Says = Callable[[str, dict[str, Any]], Fault | None]
Words = dict[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class Scripted:
    """The plan of one message, in the form that a model writes it in."""

    kind: str
    plan: Mapping[str, Any]
    words: Words = field(default_factory=dict)
    """What its unknown words mean."""

    def chosen(self) -> dict[str, Any]:
        """The answer of the first call."""
        told = [(said, (means,) if isinstance(means, str) else means) for said, means in self.words.items()]
        return {"kind": self.kind, "about": [], "words": [{"said": s, "means": m} for s, every in told for m in every]}


def planning(plans: Mapping[str, Scripted]) -> Says:
    """A model that makes these plans, and hands on what was proposed to it."""

    def says(purpose: str, request: dict[str, Any]) -> Fault | None:
        return _say(purpose, request, plans.get(blocks(request).get("message", "")))

    return says


def _say(purpose: str, request: dict[str, Any], scripted: Scripted | None) -> Fault | None:
    if _asked(purpose, request, "understand"):
        return Fault(content=json.dumps(scripted.chosen() if scripted else {"kind": "none", "about": [], "words": []}))
    if _asked(purpose, request, "formulate") and scripted is not None:
        return Fault(content=json.dumps(scripted.plan))
    return _hand_on(purpose, request)


def _asked(purpose: str, request: dict[str, Any], step: str) -> bool:
    """Whether a call is one for a plan, the repaired one too."""
    named = request.get("response_format", {}).get("json_schema", {}).get("name")
    return purpose == step or (purpose == "repair" and named == step)


def _hand_on(purpose: str, request: dict[str, Any]) -> Fault | None:
    """An analyst's answer: what was proposed, word for word; or that there is nothing."""
    if purpose not in ("tools", "rewrite"):
        return None
    found = blocks(request).get("draft", "")
    text = found.partition("\n")[2] or "Nothing was found out."
    return Fault(content=json.dumps({"answer": text, "confidence": 0.9}))


def late(seconds: float) -> Says:
    """A model that is late with every plan."""

    def says(purpose: str, request: dict[str, Any]) -> Fault | None:
        if _asked(purpose, request, "understand") or _asked(purpose, request, "formulate"):
            return Fault(stall=seconds)
        return _hand_on(purpose, request)

    return says


BROKEN = ("", "I think so.", "[]", '{"kind": ', '{"kind": 7}', '{"kind": "select", "about": "all", "words": {}}', "null")
"""What is no plan, or not even JSON."""


def broken(plans: Mapping[str, Scripted], step: str, text: str) -> Says:
    """A model whose answers to one of the two calls are broken, the repaired ones as well."""
    right = planning(plans)

    def says(purpose: str, request: dict[str, Any]) -> Fault | None:
        return Fault(content=text) if _asked(purpose, request, step) else right(purpose, request)

    return says


# -- plans that fit their form and answer something else ------------------------------------------------------------


def perturbed(scripted: Scripted, others: list[Scripted], dice: Random) -> Iterator[Scripted]:
    """Plans like the right one with one thing wrong in each: a condition less, another year, property, thing or direction."""
    for change in (_without_filter, _with_filter, _other_year, _other_property, _other_measure, _other_way, _other_thing):
        plan = copy.deepcopy(dict(scripted.plan))
        if change(plan, dice):
            yield Scripted(scripted.kind, plan, scripted.words)
    other = dice.choice(others)
    yield Scripted(other.kind, other.plan, scripted.words)
    yield Scripted("select", {"of": _a_set(scripted.plan), "show": [], "exists": False}, scripted.words)
    yield Scripted("aggregate", {"of": {**_a_set(scripted.plan), "filters": []}, "measure": "count"}, scripted.words)


def _sets(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan["of"]] if isinstance(plan.get("of"), dict) else [side["of"] for side in plan.get("sides", ())]


def _a_set(plan: Mapping[str, Any]) -> dict[str, Any]:
    found = _sets(dict(plan))
    return copy.deepcopy(found[0]) if found else {"type": "EntityProject", "years": [2023], "filters": [], "among": []}


def _without_filter(plan: dict[str, Any], dice: Random) -> bool:
    sets = [of for of in _sets(plan) if of.get("filters")]
    if not sets:
        return plan.pop("expect", None) is not None
    sets[-1 if dice.random() < 0.5 else 0]["filters"].pop()
    return True


def _with_filter(plan: dict[str, Any], dice: Random) -> bool:
    sets = _sets(plan)
    for of in sets:
        value = dice.choice(("Red", "Green", "Amber"))
        if any(one.get("value") == value for one in of.get("filters", ())):
            return False
        of["filters"] = [*of.get("filters", ()), {"property": "rating", "op": "=", "value": value}]
    return bool(sets)


def _other_year(plan: dict[str, Any], dice: Random) -> bool:
    found = [*_sets(plan), plan]
    for one in found:
        if one.get("years"):
            one["years"] = [one["years"][0] - 1 if one["years"][0] > 2020 else one["years"][0] + 1]
            return True
    return False


def _other_property(plan: dict[str, Any], dice: Random) -> bool:
    for field_name in ("property", "by"):
        if plan.get(field_name):
            plan[field_name] = "year_baseline" if plan[field_name] != "year_baseline" else "whole_life_cost"
            return True
    for side in plan.get("sides", ()):
        if side.get("property"):
            side["property"] = "year_forecast"
    if plan.get("properties"):
        plan["properties"] = ["end_date" if plan["properties"] != ["end_date"] else "start_date"]
        return True
    return any(side.get("property") for side in plan.get("sides", ()))


def _other_measure(plan: dict[str, Any], dice: Random) -> bool:
    if "measure" not in plan:
        return False
    plan["measure"] = "median" if plan["measure"] != "median" else "mean"
    plan.setdefault("property", "whole_life_cost")
    plan["property"] = plan["property"] or "whole_life_cost"
    return True


def _other_way(plan: dict[str, Any], dice: Random) -> bool:
    turned = {">": "<", "<": ">", ">=": "<", "<=": ">", "=": "<>", "unknown": "known", "known": "unknown"}
    for of in _sets(plan):
        for one in of.get("filters", ()):
            if one.get("op", "=") in turned:
                one["op"] = turned[one.get("op", "=")]
                return True
    if "descending" in plan:
        plan["descending"] = not plan["descending"]
        return True
    return False


def _other_thing(plan: dict[str, Any], dice: Random) -> bool:
    for of in _sets(plan):
        for one in of.get("filters", ()):
            if one.get("property") == "name":
                one["value"] = "HMRC" if one["value"] != "HMRC" else "DWP"
                return True
    if plan.get("entities"):
        plan["entities"] = ["Sizewell C" if plan["entities"] != ["Sizewell C"] else "Crossrail Programme"]
        return True
    return False
