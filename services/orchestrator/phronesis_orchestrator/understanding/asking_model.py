"""A plan by a language model, for a message that the rules do not understand: two short calls, and a check by code.

The first call chooses the kind of plan and says what unknown words stand for, the second writes the plan in the form of that
kind. What comes back is held against the ontology and against the message itself (`accounts`); a fault goes back once.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from phronesis_bus.envelope import remaining
from phronesis_contracts import Message, ServiceError
from phronesis_contracts.ontology import PropertyView, RelationshipView, TypeView, Words
from phronesis_contracts.twin import Level

from ..models.reasoner import Answer, ChosenPlan, Fault, FormulatedPlan, Interpreter, PlanQuestion, TurnContext
from ..turns.execution import Outcome, TurnRun
from .accounts import GLOSSED, SEARCHED, Account, Claim, Gloss
from .language import fold
from .lexicon import Lexicon, pick
from .plan import EntityRef, Plan, Understood, Unknown
from .plan_forms import KINDS, Decoder, Misfit, Names, form_of
from .planner import is_own
from .reading import read

_TYPES, _PROPERTIES, _RELATIONSHIPS = 10, 20, 8
"""Names of each sort that the first call chooses from."""
_OF_PLAN = 12
"""Properties that the second call may use."""
_VALUES = 6
"""Values of a property that are shown."""
_THINGS = 8
"""Things of the message that are shown."""
TEXT = "text"
"""What words mean that are only searched for in texts."""


class Offers:
    """The vocabulary of one message, ranked by how much it has to do with it."""

    def __init__(self, account: Account) -> None:
        self._account, self._view = account, account.lexicon.view
        self._language = account.lexicon.language
        self._stems = {token.stem for token in account.reading.tokens}

    @cached_property
    def things(self) -> tuple[EntityRef, ...]:
        """The things that words of the message may name."""
        found = (ref for item in self._account.reading.items for refs in item.of("entity") for ref in refs)
        return tuple({(ref.type, ref.id): ref for ref in found}.values())

    def is_unclear(self, thing: EntityRef) -> bool:
        """Whether the words that name a thing name others of its type as well, of which only a part was said."""
        for item in self._account.reading.items:
            for refs in item.of("entity"):
                if any(ref.id == thing.id and ref.type == thing.type for ref in refs):
                    return not item.whole and len({ref.name for ref in refs}) > 1
        return False

    @cached_property
    def _scores(self) -> Mapping[str, float]:
        """How much each type has to do with the message."""
        found: dict[str, float] = {one.name: 0.0 for one in self._view.ontology.types}
        for item in self._account.reading.items:
            for type, _ in item.of("type"):
                found[type] += 3.0
            for refs in item.of("entity"):
                found[refs[0].type] += 2.0
            for kind in ("property", "superlative", "value"):
                for type in {one[0] for one in item.of(kind)}:
                    found[type] += 1.0
        for ref in self._account.focus.entities[:3]:
            found[ref.type] = found.get(ref.type, 0.0) + 1.5
        if self._account.focus.selection is not None:
            found[self._account.focus.selection.type] = found.get(self._account.focus.selection.type, 0.0) + 1.5
        for one in self._view.ontology.types:
            found[one.name] += self._overlap(one.words) + min(1.0, len(self._view.things(one.name)) / 1_000)
        return found

    def _overlap(self, words: Words) -> float:
        said = {stem for phrase in pick(words, self._language.name) for stem in self._language.key(phrase)}
        return float(len(said & self._stems))

    @cached_property
    def types(self) -> tuple[TypeView, ...]:
        ranked = sorted(self._view.ontology.types, key=lambda one: -self._scores[one.name])
        return tuple(one for one in ranked if self._view.things(one.name))[:_TYPES]

    @cached_property
    def properties(self) -> tuple[tuple[str, PropertyView], ...]:
        sensed = {
            one[:2]
            for item in self._account.reading.items
            for kind in ("property", "superlative", "value")
            for one in item.of(kind)
        }

        def worth(type: str, one: PropertyView) -> float:
            known = self._view.known.get((type, one.name))
            said = 4.0 if (type, one.name) in sensed else 0.0
            return said + self._scores[type] + self._overlap(one.words) + (0.5 if known and known.known else -4.0)

        every = [(kind.name, one) for kind in self.types for one in kind.properties]
        return tuple(sorted(every, key=lambda pair: -worth(*pair)))[:_PROPERTIES]

    @cached_property
    def relationships(self) -> tuple[RelationshipView, ...]:
        def worth(one: RelationshipView) -> float:
            ends = max((self._scores[type] for type in (*one.sources, *one.targets)), default=0.0)
            return self._overlap(one.forward) + self._overlap(one.backward) + ends / 10

        return tuple(sorted(self._view.ontology.relationships, key=lambda one: -worth(one)))[:_RELATIONSHIPS]

    @cached_property
    def _claims(self) -> Mapping[str, Claim]:
        """What words may be said to mean, by the name under which a model says it."""
        found: dict[str, Claim] = {one.name: ("type", one.name) for one in self.types}
        found |= {f"{type}.{one.name}": ("property", one.name) for type, one in self.properties}
        found |= {one.name: ("relation", one.name) for one in self.relationships}
        return found | {name: ("op", name) for name in GLOSSED} | {TEXT: SEARCHED}

    def claim(self, name: str) -> Claim | None:
        """What a name in an answer stands for; `None` where it was not offered."""
        return self._claims.get(name)

    @property
    def about(self) -> tuple[str, ...]:
        """What a plan may be about."""
        return tuple(name for name, (sort, _) in self._claims.items() if sort != "op")

    @property
    def meanings(self) -> tuple[str, ...]:
        """What unknown words may mean."""
        return tuple(self._claims)

    def names(self, about: Iterable[str], glosses: Iterable[Claim], kind: str) -> Names:
        """What a plan may name, once it is known what it is about."""
        chosen = [claim for name in about if (claim := self._claims.get(name)) is not None] + list(glosses)
        wanted = {what for sort, what in chosen if sort == "property"}
        types = [what for sort, what in chosen if sort == "type"]
        types += [one.name for one in self.types if self._scores[one.name] >= 1.0]
        types += [name.partition(".")[0] for name in about if "." in name]
        if not types:
            types = [one.name for one in self.types[:2]]
        types = [one for one in dict.fromkeys(types) if one in self._view.types][:4]
        of_types = [one.name for type, one in self.properties if type in types]
        of_types.sort(key=lambda name: name not in wanted)
        joins = [
            one.name for one in self._view.ontology.relationships if {*one.sources} & {*types} and {*one.targets} & {*types}
        ]
        if kind in ("relate", "rank", "gaps"):
            joins += [one.name for one in self.relationships if {*one.sources, *one.targets} & {*types}]
        years = sorted({year for type in types for year in self._view.years_of(type)})
        chains = [one.name for one in self._view.ontology.chains] if kind == "gaps" else []
        return Names(
            types=tuple(types),
            properties=tuple(dict.fromkeys(of_types))[:_OF_PLAN],
            relationships=tuple(dict.fromkeys(joins))[:_RELATIONSHIPS],
            chains=tuple(chains[:_RELATIONSHIPS]),
            years=tuple(years[-20:]),
        )

    # -- as lines of a prompt -------------------------------------------------------------------------------------

    def overview(self) -> tuple[str, ...]:
        """What there is to choose from, the words that are open first."""
        lines = self._open_words()
        lines += [_line(type=one.name, called=self._called(one.words)) for one in self.types]
        lines += [_line(property=f"{type}.{one.name}", called=self._called(one.words)) for type, one in self.properties]
        lines += [_line(relationship=one.name, called=self._called(one.forward)) for one in self.relationships]
        return tuple(lines)

    def details(self, names: Names, glosses: Sequence[Gloss]) -> tuple[str, ...]:
        """What a plan may be made of, with units, values and directions."""
        lines = [_line(words=word, mean=what) for word, (_, what) in glosses]
        lines += self._open_words(known={word for word, _ in glosses})
        for type in names.types:
            for one in self._view.properties(type):
                if one.name in names.properties:
                    told: dict[str, Any] = {"kind": one.kind} | ({"unit": one.unit} if one.unit else {})
                    values = self._values(type, one)
                    told |= {"values": values} if values else {}
                    lines.append(_line(property=one.name, of=type, called=self._called(one.words), **told))
        for name in names.relationships:
            one_way = self._view.relationships[name]
            ends = [[end for end in side if end in names.types] or side[:1] for side in (one_way.sources, one_way.targets)]
            lines.append(_line(relationship=name, source=ends[0], target=ends[1], called=self._called(one_way.forward)))
        return tuple(lines)

    def _open_words(self, known: set[str] | None = None) -> list[str]:
        unknown = [item.text for item in self._account.unexplained if item.text not in (known or set())]
        lines = [_line(unknown_words=unknown)] if unknown else []
        if self.things:
            lines.append(_line(things=[f"{ref.name} ({ref.type})" for ref in self.things[:_THINGS]]))
        focus = self._account.focus
        if self._account.leans and focus.plan is not None:
            spoken = [ref.name for ref in focus.entities[:_THINGS]]
            before = focus.plan.model_dump(mode="json", exclude_defaults=True)
            lines.append(_line(spoken_of=spoken, plan_before=before))
        return lines

    def _values(self, type: str, one: PropertyView) -> list[str]:
        stored = self._view.known.get((type, one.name))
        every = list(dict.fromkeys((*one.choices, *(each.value for each in (stored.values if stored else ())))))
        said = [v for item in self._account.reading.items for t, p, v in item.of("value") if (t, p) == (type, one.name)]
        return list(dict.fromkeys((*said, *every)))[:_VALUES] if one.kind == "string" else []

    def _called(self, words: Words) -> str:
        return ", ".join(pick(words, self._language.name)[:3])


def choice_form(offers: Offers, unknown: list[str]) -> dict[str, Any]:
    """The form of the first answer."""
    fields: dict[str, Any] = {
        "kind": {"type": "string", "enum": [*KINDS, "none"]},
        "about": {"type": "array", "items": {"type": "string", "enum": list(offers.about)}},
    }
    if unknown:
        one = {"said": {"type": "string"}, "means": {"type": "string", "enum": list(offers.meanings)}}
        fields["words"] = {"type": "array", "items": _object(one)}
    return _object(fields)


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _line(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False, default=str)


log = logging.getLogger(__name__)

_MENDABLE = frozenset({"words", "ambiguous", "property", "relationship", "unsupported", "reference"})
"""Reasons for which the rules have no plan and a model may have one."""
SURE = 0.75
"""Certainty of a plan whose every word the rules know, too, and only could not put together."""
GUESSED = 0.5
"""The same where words were explained by the model alone: no code can tell whether it is right."""
_ENOUGH_TIME = 0.5
"""The share of a turn's time that has to be left for a plan to be asked for."""
_PHRASE = 3
"""Words that mean something together."""
Said = TypeVar("Said", bound=Message)


async def ask_model(
    running: TurnRun, model: Interpreter, turn: TurnContext, before: Understood, lexicon: Lexicon
) -> Understood | None:
    """The message as a model understood it; `None` where it is not asked, or what it says is not taken.

    Args:
        before: what the rules made of it.
    """
    asking = await asyncio.to_thread(_Asking, running, model, turn, before, lexicon)
    if not asking.is_wanted():
        return None
    try:
        found = await asking.ask()
    except ServiceError as error:
        log.warning("the model was asked for a plan, and failed: %s", error.code)
        running.judge("planning", "failed")
        return None
    running.judge("planning", asking.outcome)
    return found


class _Asking:
    def __init__(self, running: TurnRun, model: Interpreter, turn: TurnContext, before: Understood, lexicon: Lexicon) -> None:
        self._running, self._model, self._turn, self._before, self._lexicon = running, model, turn, before, lexicon
        self._text = " ".join(turn.user_text.split())
        self._account = Account(read(self._text, lexicon), lexicon, turn.focus)
        self._offers = Offers(self._account)
        self._repaired = False
        self.outcome: Outcome = "rejected"
        """What became of the plan."""

    def is_wanted(self) -> bool:
        """Whether a model may know better, and there is time to ask it."""
        plan, agent, language = self._before.plan, self._turn.agent, self._lexicon.language
        if not self._text or not isinstance(plan, Unknown) or plan.reason not in _MENDABLE or agent is None:
            return False
        if not agent.prompts.get("understand") or not agent.prompts.get("formulate"):
            return False
        if plan.reason == "reference" and self._turn.focus.plan is None:
            return False
        if language.recognise(self._text, "order") is not None or is_own(self._text, language):
            return False
        limit = self._running.settings.turn_limit
        return self._account.about_data and not self._account.beyond_plans and remaining(limit) > _ENOUGH_TIME * limit

    async def ask(self) -> Understood | None:
        """The plan, checked; `None` where the model gives none that holds. Raises `ServiceError`."""
        form = choice_form(self._offers, [item.text for item in self._account.unexplained])
        asked = PlanQuestion(self._offers.overview(), form)
        chosen = await self._checked(
            "understand", ChosenPlan, lambda fault: self._model.understand(self._turn, asked, fault), self._glossed
        )
        if chosen is None:
            return None
        kind, about, glosses = chosen
        if kind not in KINDS:
            self.outcome = "none"
            return None
        self._account = replace(self._account, glosses=glosses)
        names = self._offers.names(about, [claim for _, claim in glosses], kind)
        question = PlanQuestion(self._offers.details(names, glosses), form_of(kind, names))
        plan = await self._checked(
            "formulate",
            FormulatedPlan,
            lambda fault: self._model.formulate(self._turn, question, fault),
            lambda said: self._planned(kind, said),
        )
        if plan is None:
            return None
        self.outcome = "repaired" if self._repaired else "accepted"
        notes = tuple(f"{wrong} → {right}" for wrong, right in self._account.reading.mended)
        return Understood(
            plan=plan,
            language=self._lexicon.language.name,
            leans=self._account.leans,
            certainty=GUESSED if glosses or notes else SURE,
            notes=notes,
            by="model",
            glosses=tuple((word, sort, name) for word, (sort, name) in glosses),
        )

    async def _checked(
        self,
        name: str,
        answer: type[Said],
        call: Callable[[Fault | None], Awaitable[Answer[Said]]],
        take: Callable[[Said], Any],
    ) -> Any:
        """What `take` makes of an answer. Of both calls together one is repaired; `None` where that was in vain."""
        fault: Fault | None = None
        for step in (name, f"{name}.repair"):
            last = fault
            got = await self._running.steps.made(step, answer, lambda last=last: call(last))  # type: ignore[misc]
            if got.value is not None:
                try:
                    return take(got.value)
                except Misfit as misfit:
                    fault = Fault(got.value.model_dump_json(), str(misfit))
                    log.info("what the model said for %s is not taken: %s", step, misfit)
            else:
                fault = got.fault
            if self._repaired:
                return None
            self._repaired = True
        return None

    def _glossed(self, said: ChosenPlan) -> tuple[str, list[str], tuple[Gloss, ...]]:
        """The choice, with a claim for each run of words that the rules do not know. Raises `Misfit`."""
        if said.kind == "none":
            return said.kind, [], ()
        if said.kind not in KINDS:
            raise Misfit(f"kind: one of {', '.join(KINDS)}, or none")
        glosses: list[Gloss] = []
        for item in self._account.unexplained:
            told = [one for one in said.words if fold(item.text) in fold(one.said).split()]
            if not told:
                raise Misfit(f"it is not said what “{item.text}” means")
            for one in told:
                claim = self._offers.claim(one.means)
                if claim is None or (claim == SEARCHED and said.kind != "select"):
                    raise Misfit(f"“{item.text}” cannot mean {one.means}")
                phrase = fold(one.said) in fold(self._text) and len(one.said.split()) <= _PHRASE
                glosses.append((one.said if phrase else item.text, claim))
        return said.kind, list(said.about), tuple(dict.fromkeys(glosses))

    def _planned(self, kind: str, said: FormulatedPlan) -> Plan:
        """The plan, if it fits ontology, store and message. Raises `Misfit`."""
        plan = Decoder(self._lexicon.view, self._thing, self._level).plan(kind, said.plan)
        if wrong := self._account.objection(plan):
            raise Misfit(wrong)
        return plan

    def _thing(self, said: str, type: str | None) -> EntityRef:
        """The thing of a name that stands in the message, or was spoken of. Raises `Misfit`."""
        spoken = self._turn.focus.entities
        there = [ref for ref in (*self._offers.things, *spoken) if type is None or ref.type == type]
        named = [ref for ref in there if fold(ref.name) == fold(said) or fold(ref.id) == fold(said)]
        if not named:
            heard = {
                (ref.type, ref.id) for item in read(said, self._lexicon).items for refs in item.of("entity") for ref in refs
            }
            named = [ref for ref in there if (ref.type, ref.id) in heard]
        if not named:
            raise Misfit(f"the message names no {type or 'thing'} {said!r}")
        distinct = {fold(ref.name): ref for ref in sorted(named, key=lambda ref: max(ref.years, default=0))}
        if len(distinct) > 1:
            raise Misfit(f"{said!r} may be {', '.join(ref.name for ref in list(distinct.values())[:6])}")
        (found,) = distinct.values()
        if self._offers.is_unclear(found) and found not in spoken:
            raise Misfit(f"it is open which thing is meant by {said!r}")
        return found

    def _level(self, type: str) -> Level | None:
        said = {level for item in self._account.reading.of("type") for name, level in item.of("type") if name == type and level}
        return next(iter(said)) if len(said) == 1 else self._lexicon.view.usual_level(type)
