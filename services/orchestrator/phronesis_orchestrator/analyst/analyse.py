"""The analyst without a language model: questions about the twin understood by rules, answered from what the twin holds.

The rule above all others: every word of a question has to be explained, by the lexicon, as a number or as part of a name, and
every phrase has to have a part in the answer. A question for which that fails is declined, never guessed at.
"""

from __future__ import annotations

import logging

from phronesis_contracts import BadRequest
from phronesis_contracts.analysis import Analysis, AnswerData, MemoryProcess, Mode

from ..markup import plain, shown
from ..reasoner import TurnContext
from ..running import Running
from .calendar import Years, listed, years_of
from .changes import came_and_went, ratings
from .counts import count
from .findings import Findings
from .follow import leans, together
from .lists import listing, ranked
from .missing import missing_in
from .naming import Names
from .problems import Declined, unfit, unknown
from .quick import answered, at_once
from .reading import Reading, read
from .saying import confidence, table
from .shares import share
from .single import about_one, answer_one
from .spelling import spelt, with_quotes
from .totals import total
from .twin import TooMany, Twin
from .wanted import wanted

log = logging.getLogger(__name__)

_NEEDS_A_NAME = ("history", "impact", "detail", "why", "text")
_PAST = 4
"""Earlier questions of the user that a follow-up may lean on."""
_INTENTS = {
    "count": "a count",
    "list": "a list",
    "total": "a sum or an average",
    "share": "a share",
    "top": "a ranking",
    "changes": "a change of ratings",
    "joined": "what is new",
    "left": "what is gone",
    "gaps": "what is missing",
}


async def analyse(running: Running, turn: TurnContext) -> Analysis:
    """Answer the turn's question from the twin, or say plainly why not.

    Args:
        running: the turn in hand, for its caller and its neighbours.
        turn: its context; earlier questions are read from its history.

    Raises:
        ServiceError: the graph cannot be asked.
    """
    text = (turn.user_text or turn.final_input).strip()
    quick = at_once(turn, text)
    if quick is not None:
        return quick
    twin = Twin(running.neighbours, running.claim.who)
    analyst = _Analyst(twin)
    try:
        return await analyst.answer(text, [past.text for past in turn.history if past.role == "user"][-_PAST:])
    except BadRequest as refused:
        log.warning("a question that was understood was refused: %s", refused.code)
        return _declined(twin, Declined("I cannot ask the records for that. Please put it differently."))
    except TooMany:
        return _declined(
            twin, Declined("That is more than one answer can list: narrow it down by year or department.", mode="E")
        )
    except Declined as problem:
        return _declined(twin, problem)


def _declined(twin: Twin, problem: Declined) -> Analysis:
    if problem.mode in "ABCD":
        done = answered(problem.mode, "a question without an answer", problem.said, "The data does not hold it.", 0.5)
        return done.model_copy(update={"cypher_executed": twin.executed})
    done = answered(problem.mode, "not understood completely", problem.said, "The question was declined, not guessed at.", 0.0)
    charts = (table("Which one?", problem.rows),) if problem.rows else ()
    return done.model_copy(update={"visualizations": charts})


class _Analyst:
    def __init__(self, twin: Twin) -> None:
        self._twin = twin
        self._leant = False

    async def answer(self, text: str, before: list[str]) -> Analysis:
        reading = await self._understood(text)
        if leans(reading):
            reading = await self._made_whole(reading, before)
        if reading.left:
            raise await self._not_understood(reading)
        if not reading.has("date") and (asked := reading.of("when", "future")):
            raise unfit(reading.words(asked[0].at, asked[0].end))
        if about_one(reading):
            return self._analysis(await answer_one(self._twin, reading), "one thing", reading)
        if reading.has(*_NEEDS_A_NAME):
            raise Declined("Of which project? Please name it as the reports do.", mode="E")
        return await self._of_a_set(reading)

    async def _understood(self, text: str) -> Reading:
        reading = spelt(with_quotes(read(text), text))
        needed = reading.has(*_NEEDS_A_NAME, "missing")
        return await Names(self._twin).resolve(reading, needed)

    async def _made_whole(self, reading: Reading, before: list[str]) -> Reading:
        """The question with what it takes from those before it."""
        past: Reading | None = None
        for text in before:
            try:
                one = await self._understood(text)
            except Declined:
                continue
            if one.left:
                continue
            if leans(one):
                past = together(past, one) if past is not None else None
            else:
                past = one
        if past is None:
            if reading.left:
                raise await self._not_understood(reading)
            if reading.has("year_word") and not reading.has("year", "relative"):
                raise Declined("Which year do you mean, and what of? Please name both.", mode="E")
            raise Declined("What do you mean? Please ask the whole question: of what, and of which year.", mode="J")
        self._leant = True
        return together(past, reading)

    async def _not_understood(self, reading: Reading) -> Declined:
        words = reading.unexplained()
        if not reading.has(*_NEEDS_A_NAME, "missing"):
            return unknown(words)
        near = await Names(self._twin).suggestions(words)
        if not near:
            return unknown(words)
        choices = "\n".join(f"- {name}" for name in near)
        said = f"I know nothing called “{words}”. Do you mean one of these? They are near in meaning, no more.\n\n{choices}"
        return Declined(said, mode="E", rows=tuple({"name": name} for name in near))

    async def _of_a_set(self, reading: Reading) -> Analysis:
        question = wanted(reading)
        known = await self._twin.years(question.frame.type)
        over_years = (
            question.kind == "changes"
            or question.frame.groups == ("year",)
            or (question.kind in ("count", "total") and question.reading.has("change"))
        )
        years = years_of(question.reading, known, default_all=over_years)
        if not years.asked:
            said = f"There is nothing on record for {listed(years.absent)}; the data covers {listed(known)}."
            raise Declined(said, mode="A")
        match question.kind:
            case "joined" | "left":
                found = await came_and_went(self._twin, question, years, known)
            case "changes":
                found = await ratings(self._twin, question, years)
            case "gaps":
                found = await missing_in(self._twin, question, years)
            case "list" | "count" if question.kind == "list" or question.frame.beyond:
                found = await listing(self._twin, question, years)
            case "top":
                found = await ranked(self._twin, question, years)
            case "share":
                found = await share(self._twin, question, years)
            case "total":
                found = await total(self._twin, question, years)
            case "count":
                found = await count(self._twin, question, years)
        return self._analysis(found, _INTENTS[question.kind], reading, years)

    def _analysis(self, found: Findings, intent: str, reading: Reading, years: Years | None = None) -> Analysis:
        mode: Mode = "C" if self._leant else "B" if found.several_steps else "A"
        notes = [years.note] if years is not None and years.note else []
        if years is not None and years.absent:
            notes.append(f"There is nothing on record for {listed(years.absent)}.")
        kinds = ", ".join(dict.fromkeys(item.kind for item in reading.items if item.kind not in ("small", "followup")))
        trace = f"Every word was explained ({kinds}). Asked of the twin: {len(self._twin.statements)} reads."
        return Analysis(
            mode=mode,
            memory_process=MemoryProcess(intent=intent, thought_trace=trace),
            answer=shown("\n\n".join((found.answer, *notes))),
            analysis=tuple(plain(text) for text in found.insights),
            data=AnswerData(query_results=found.rows, summary_stats=found.stats),
            visualizations=tuple(chart for chart in found.charts if chart.data),
            cypher_executed=self._twin.executed,
            confidence=confidence(1.0, found.known, found.unknown, found.gaps + len(notes if years and years.absent else [])),
        )
