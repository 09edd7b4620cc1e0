"""A plan by a language model, for a message that the rules do not understand: two short calls, and a check by code.

The first call chooses the kind of plan and says what unknown words stand for, the second writes the plan in the form of that
kind. What comes back is held against the ontology and against the message itself (`accounts`); a fault goes back once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from phronesis_bus.envelope import remaining
from phronesis_contracts import Message, ServiceError
from phronesis_contracts.twin import Level

from ..models.reasoner import Answer, ChosenPlan, Fault, FormulatedPlan, Interpreter, PlanQuestion, TurnContext
from ..turns.execution import Outcome, TurnRun
from .accounts import Account
from .claims import SEARCHED, Gloss
from .language import fold
from .lexicon import Lexicon
from .offers import Offers, choice_form
from .plan import EntityRef, Plan, Understood, Unknown
from .plan_forms import KINDS, Decoder, Misfit, form_of
from .planner import is_own
from .reading import read

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
