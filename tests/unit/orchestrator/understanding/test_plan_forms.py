"""Plans as a model writes them: the form of each kind, and what is said of a plan that does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from phronesis_contracts.ontology import (
    EntityName,
    OntologyView,
    PropertyValues,
    PropertyView,
    RelationshipView,
    TypeView,
    ValueCount,
    Vocabulary,
)
from phronesis_contracts.twin import Level
from phronesis_orchestrator.models.prompts import keys_of
from phronesis_orchestrator.understanding.accounts import Account
from phronesis_orchestrator.understanding.language import languages
from phronesis_orchestrator.understanding.lexicon import Lexicon, VocabularyView
from phronesis_orchestrator.understanding.plan import NO_FOCUS, EntityRef
from phronesis_orchestrator.understanding.plan_forms import KINDS, Decoder, Misfit, Names, form_of
from phronesis_orchestrator.understanding.reading import read
from phronesis_tokens import count

_YEARS = (2024, 2025)


def _words(*words: str) -> dict[str, tuple[str, ...]]:
    return {"en": words}


ONTOLOGY = OntologyView(
    name="harbour",
    version="1",
    types=(
        TypeView(
            name="Ship",
            words=_words("ship", "ships"),
            properties=(
                PropertyView(name="tonnage", kind="number", unit="t", words=_words("tonnage"), most=_words("heaviest")),
                PropertyView(name="flag", kind="string", choices=("red", "white"), words=_words("flag")),
                PropertyView(name="launched", kind="date", words=_words("launch", "launched")),
            ),
        ),
        TypeView(name="Quay", words=_words("quay", "quays")),
    ),
    relationships=(
        RelationshipView(
            name="MOORED_AT",
            sources=("Ship",),
            targets=("Quay",),
            forward=_words("moored at"),
            backward=_words("holds"),
            rule="same",
        ),
    ),
)
VIEW = VocabularyView.of(
    (
        Vocabulary(
            version="1",
            ontology=ONTOLOGY,
            years=_YEARS,
            values=(
                PropertyValues(
                    type="Ship",
                    property="flag",
                    known=2,
                    values=(ValueCount(value="red", nodes=1), ValueCount(value="white", nodes=1)),
                ),
                PropertyValues(type="Ship", property="tonnage", known=2),
            ),
            names=tuple(
                EntityName(type=type, id=id, name=name, level=Level.L3, years=_YEARS)
                for type, id, name in (("Ship", "s1", "Albatros"), ("Ship", "s2", "Kittiwake"), ("Quay", "q1", "Northquay"))
            ),
        ),
    )
)
LEXICON = Lexicon.build(VIEW, languages()["en"])
NAMES = Names(("Ship", "Quay"), ("tonnage", "flag", "launched"), ("MOORED_AT",), (), _YEARS)


def _thing(said: str, type: str | None) -> EntityRef:
    found = next((one for one in VIEW.names if one.name == said and type in (None, one.type)), None)
    if found is None:
        raise Misfit(f"no {said}")
    return EntityRef(type=found.type, id=found.id, name=found.name, level=found.level, years=found.years)


DECODER = Decoder(VIEW, _thing, lambda type: None)


def _objects(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, dict):
        own = [node] if node.get("type") == "object" else []
        return own + [one for value in node.values() for one in _objects(value)]
    return [one for value in node for one in _objects(value)] if isinstance(node, list) else []


@pytest.mark.parametrize("kind", KINDS)
def test_the_form_of_every_kind_is_strict_names_only_what_there_is_and_is_short(kind: str) -> None:
    form = form_of(kind, NAMES)
    for one in _objects(form):
        assert one["required"] == list(one["properties"])
        assert one["additionalProperties"] is False
    assert set(form["$defs"].get("Property", {}).get("enum", [])) <= {"tonnage", "flag", "launched", "name", "year"}
    assert set(form["$defs"].get("Type", {"enum": []})["enum"]) <= {"Ship", "Quay"}
    assert count(keys_of(form), 2_000) < 500


def _ships(*filters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "Ship", "years": [2025], "filters": list(filters), "among": [], **more}


def _counted(*filters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"of": _ships(*filters), "measure": "count", "property": None, "group_by": [], **more}


AT_QUAY = {"property": "name", "op": "=", "value": "Northquay", "via": "MOORED_AT", "to": "Quay"}
RED = {"property": "flag", "op": "=", "value": "Red", "via": None, "to": None}


def test_names_and_values_become_those_of_the_store() -> None:
    plan = DECODER.plan("aggregate", _counted(AT_QUAY, RED))
    assert plan.kind == "aggregate"
    assert [(one.property, one.value, one.words) for one in plan.of.filters] == [
        ("id", "q1", "Northquay"),
        ("flag", "red", "red"),
    ]


@pytest.mark.parametrize(
    ("kind", "told", "why"),
    [
        ("aggregate", _counted({**RED, "value": "purple"}), "flag is never 'purple'; there are: red, white"),
        ("aggregate", _counted({**RED, "property": "colour"}), "Ship has no property colour"),
        ("aggregate", _counted({**AT_QUAY, "value": "Southquay"}), "no Southquay"),
        ("aggregate", _counted({**AT_QUAY, "via": "OWNS"}), "OWNS does not join Ship and Quay; these do: MOORED_AT"),
        ("aggregate", _counted(measure="mean", property="flag"), "flag is no number, and has no mean"),
        ("aggregate", _counted({**RED, "property": "tonnage", "value": "big"}), "tonnage is compared with a number in t"),
        ("rank", {"of": _ships(), "by": None, "via": None}, "a ranking goes by a property or by a relationship"),
        ("rank", {"of": _ships(type="Boat"), "by": "tonnage"}, "there is no type Boat"),
        ("compare", {"sides": [_counted()], "how": "share"}, "sides"),
        ("gaps", {"years": [2025]}, "gaps are looked for around things or in a set"),
        ("poem", {}, "there is no kind of plan poem"),
    ],
)
def test_what_does_not_fit_is_said_for_repair(kind: str, told: dict[str, Any], why: str) -> None:
    with pytest.raises(Misfit) as misfit:
        DECODER.plan(kind, told)
    assert why in str(misfit.value)


@pytest.mark.parametrize(
    ("message", "told", "wrong"),
    [
        ("How many red ships are moored at Northquay?", _counted(RED, AT_QUAY), ""),
        ("How many red ships are moored at Northquay?", _counted(RED), "“moored at” is left out of the plan"),
        ("How many ships are moored at Northquay?", _counted(RED, AT_QUAY), "flag (property) stands in the plan"),
        ("How many ships were there in 2024?", _counted(), "2024 is left out of the plan"),
        ("How many ships are not red?", _counted(RED), "“not” is left out of the plan"),
        ("How many ships are red?", _counted({**RED, "op": "<>"}), "not (op) stands in the plan"),
        ("How many ships are over 5,000 t?", _counted({**RED, "property": "tonnage", "op": ">", "value": 5_000}), ""),
        (
            "How many ships are over 5,000 t?",
            _counted({**RED, "property": "tonnage", "op": "<", "value": 5_000}),
            "< (op) stands in the plan",
        ),
        (
            "How many ships are over 5,000 t?",
            _counted({**RED, "property": "tonnage", "op": ">", "value": 500}),
            "“5,000 t” is left out of the plan",
        ),
        ("How many submarines are red?", _counted(RED), "“submarines” is left out of the plan"),
        ("average tonnage of the ships", _counted(measure="mean", property="tonnage"), ""),
        ("average tonnage of the ships", _counted(measure="sum", property="tonnage"), "“average” is left out of the plan"),
        ("number of ships by flag", _counted(group_by=[{"property": "flag", "via": None, "to": None}]), ""),
        ("number of ships by flag", _counted(), "left out of the plan"),
    ],
)
def test_plan_and_message_account_for_each_other(message: str, told: dict[str, Any], wrong: str) -> None:
    account = Account(read(message, LEXICON), LEXICON, NO_FOCUS)
    objection = account.objection(DECODER.plan("aggregate", told))
    assert (objection == "") if not wrong else (wrong in objection), objection
