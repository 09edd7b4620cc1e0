"""Questions about the twin understood by rules, about sets and about one or two things, answered from what the twin holds."""

from __future__ import annotations

import logging
from dataclasses import replace

from phronesis_contracts import BadRequest
from phronesis_contracts.answers import Analysis, AnswerData, MemoryProcess, Mode

from ...models.reasoner import TurnContext
from ...turns.execution import TurnRun
from ..presentation import sanitize_answer, sanitize_text
from .counts import count, share, total
from .lists import came_and_went, heading, listing, ranked, ratings
from .names import Named, Names, TooMany, Twin, spelt, with_quotes
from .ontology import MEASURES, has
from .presentation import Findings, answered, at_once, confidence, joined, table
from .reading import Declined, Item, Reading, Years, leans, listed, read, together, unfit, unknown, years_of
from .story import departments_of, facts, history, impact, missing_in, missing_of
from .wanted import wanted

_ANYWHERE = frozenset(
    """when future small followup list howmuch rated scope by year_word year relative since after before until
    between annual entity existence pronoun""".split()
)
_VALUES = ("rating", "status", "category", "department")
_SUMMARY = ("department", "category", "rating", "status", "start_date", "end_date", "whole_life_cost")
_COMPARED = ("rating", "whole_life_cost", "year_baseline", "year_forecast", "end_date")
_VERBS = frozenset("is was were are has did does".split())


def about_one(reading: Reading) -> bool:
    """Whether a question is about the things it names, and not about a set that hangs together with one of them."""
    named = [item.value for item in reading.of("entity")]
    if not named or reading.has("count", "top", "aggregate", "share", "joined", "left", "cmp"):
        return False
    return all(item.value[0] == named[0].type for item in reading.of("type")) or reading.has("missing", "impact", "history")


async def answer_one(twin: Twin, reading: Reading) -> Findings:
    """What is wanted of the one thing, or of several side by side."""
    things = [item.value for item in reading.of("entity")]
    known = await twin.years(things[0].type)
    if len(things) > 1:
        return await _side_by_side(twin, reading, things, known)
    named: Named = things[0]
    if reading.has("missing"):
        _check(reading, {"missing", "type", "date", "measure", "dimension", "text"} - _properties(reading), named)
        await _delivered(twin, reading, named)
        return await missing_of(twin, named, known, years_of(reading.without("year_word"), known, default_all=True))
    if reading.has("impact"):
        _check(reading, {"impact", "type"}, named)
        return await impact(twin, named, known, years_of(reading, known))
    asked = _asked(reading)
    if lacking := [one for one in asked if not has(named.type, one)]:
        raise Declined(f"Of “{named.name}” there is no {heading(lacking[0])} on record.", mode="E")
    if not asked and not reading.has("detail") and not reading.has(*_VALUES, "over_budget", "under_budget"):
        return await _story(twin, reading, named, known)
    return await _facts(twin, reading, named, known, asked)


async def _story(twin: Twin, reading: Reading, named: Named, known: tuple[int, ...]) -> Findings:
    _check(reading, {"history", "trend", "change", "type"}, named)
    years = years_of(reading.without("year_word"), known, default_all=True)
    if years.stated and not years.asked:
        raise Declined(f"There are no reports of {joined([str(year) for year in years.absent])}.", mode="A")
    return await history(twin, named, known, years)


async def _facts(twin: Twin, reading: Reading, named: Named, known: tuple[int, ...], asked: tuple[str, ...]) -> Findings:
    allowed = {"measure", "dimension", "date", "text", "why", "who", "detail", "type", "trend", "change", "history"}
    _check(reading, allowed | set(_VALUES) | {"over_budget", "under_budget"}, named)
    which_years = reading.has("year_word") and not reading.has("year", "relative")
    over_years = which_years or reading.has("trend", "change", "annual", "history")
    years = years_of(reading.without("year_word"), known, default_all=over_years)
    if years.stated and not years.asked:
        raise Declined(f"There are no reports of {joined([str(year) for year in years.absent])}.", mode="A")
    found = reading.of(*_VALUES)
    stated = tuple(item for item in found if not _apposition(reading, item))
    if len(stated) < len(found):
        await _delivered(twin, reading, named)
    if not asked and not stated and not reading.has("over_budget", "under_budget"):
        asked = (
            _SUMMARY if named.type == "EntityProject" else tuple(one for one in MEASURES if named.type in MEASURES[one].types)
        )
    if reading.has("over_budget", "under_budget"):
        asked = (*asked, "variance")
    wanted = tuple(dict.fromkeys((*(item.kind for item in stated), *asked)))
    result = await facts(twin, named, wanted, known, years)
    return _yes_or_no(reading, result, stated)


def _asked(reading: Reading) -> tuple[str, ...]:
    found: list[str] = []
    for item in reading.of("measure", "dimension", "date", "text", "who", "why"):
        if item.kind == "measure":
            found.append(item.value[-1])
        elif item.kind in ("who", "why"):
            found.append("department" if item.kind == "who" else "rating_comment")
        elif not (item.kind == "dimension" and any(value.kind == item.value for value in reading.of(*_VALUES))):
            found.append(item.value)
    if reading.has("why"):
        found = [one for one in found if one != "rating"]
    if not found and reading.has("rated") and not reading.has("rating"):
        found.append("rating")
    if not found and reading.has("howmuch"):
        found.append("whole_life_cost")
    return tuple(dict.fromkeys(found))


def _properties(reading: Reading) -> set[str]:
    return {"date", "measure", "dimension", "text"} if reading.has("date", "measure", "dimension", "text") else set()


def _check(reading: Reading, allowed: set[str], named: Named) -> None:
    for item in reading.items:
        if item.kind == "department" and _apposition(reading, item):
            continue
        if item.kind not in _ANYWHERE and item.kind not in allowed:
            raise unfit(reading.words(item.at, item.end))


def _apposition(reading: Reading, item: Item) -> bool:
    if item.kind != "department":
        return False
    asks = reading.pieces and reading.pieces[0].folded in _VERBS
    return not asks or any(0 <= name.at - item.end <= 1 for name in reading.of("entity"))


async def _delivered(twin: Twin, reading: Reading, named: Named) -> None:
    own = {name for names in (await departments_of(twin, named)).values() for name in names}
    for item in reading.of("department"):
        if item.value not in own:
            raise Declined(f"“{named.name}” is not delivered by {item.value} but by {joined(sorted(own))}.", mode="E")


def _yes_or_no(reading: Reading, found: Findings, stated: tuple[Item, ...]) -> Findings:
    first = next((piece.folded for piece in reading.pieces), "")
    if len(found.rows) != 1 or not stated:
        return found
    row = found.rows[0]
    right = all(_holds(item, str(row.get(item.kind))) for item in stated)
    if first not in _VERBS:
        return found if right else replace(found, answer=f"That is not so. {found.answer}")
    published = all(row.get(item.kind) != "not published" for item in stated)
    word = "That is not published." if not published else "Yes." if right else "No."
    return replace(found, answer=f"{word} {found.answer}")


def _holds(stated: Item, found: str) -> bool:
    return str(stated.value) in found.replace(",", " ").split() if stated.kind == "department" else str(stated.value) == found


async def _side_by_side(twin: Twin, reading: Reading, things: list[Named], known: tuple[int, ...]) -> Findings:
    _check(reading, {"compare", "measure", "dimension", "date", "type"}, things[0])
    asked = _asked(reading) or _COMPARED
    years: Years = years_of(reading, known)
    parts = [await facts(twin, named, asked, known, years) for named in things[:5]]
    rows = tuple(row for part in parts for row in part.rows)
    return replace(
        parts[0],
        answer="\n\n".join(part.answer for part in parts),
        rows=rows,
        charts=tuple(chart for part in parts for chart in part.charts),
        known=sum(part.known for part in parts),
        unknown=sum(part.unknown for part in parts),
    )


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


async def analyse(running: TurnRun, turn: TurnContext) -> Analysis:
    """Answer the turn's question from the twin, or say plainly why not. Raises `ServiceError`: the graph cannot be asked."""
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
            answer=sanitize_answer("\n\n".join((found.answer, *notes))),
            analysis=tuple(sanitize_text(text) for text in found.insights),
            data=AnswerData(query_results=found.rows, summary_stats=found.stats),
            visualizations=tuple(chart for chart in found.charts if chart.data),
            cypher_executed=self._twin.executed,
            confidence=confidence(1.0, found.known, found.unknown, found.gaps + len(notes if years and years.absent else [])),
        )
