"""The twin as plans read it: the words of each tenant, kept until its nodes or its ontology change, and bounded reads, each
kept for the record.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from phronesis_bus import News
from phronesis_contracts import Message, Principal, ServiceError
from phronesis_contracts.messages import Rpc
from phronesis_contracts.ontology import VOCABULARY, AskVocabulary, OntologyChanged
from phronesis_contracts.twin import (
    DIAGNOSE_GAPS,
    LINKS,
    MAX_LINKS,
    MAX_ROWS,
    READERS,
    RUN_CHAIN,
    SURVEY,
    DiagnoseGaps,
    Gap,
    GapQuestion,
    GroupBy,
    Level,
    Link,
    LinksOf,
    NodeChanged,
    RunChain,
    Survey,
    Surveyed,
    Where,
)

from ..turns.ports import Neighbours
from .finding import Row
from .language import Language
from .lexicon import Lexicon, VocabularyView
from .plan import EntityRef, Filter, Schema, Selection

MAX_PAGES = 6
"""Pages of a list that one answer reads."""
MAX_MEMBERS = MAX_PAGES * MAX_ROWS
GAPS_AT_ONCE = 200
MAX_QUESTIONS = 4_000
"""Gap questions that one answer asks."""
_SIDE_BY_SIDE = 6
"""Requests to the graph that are under way at once."""
_YEARS = 20
"""Years of one survey."""
_CONDITIONS = 8
"""Conditions of one survey."""
_SHOWN = 12
"""Properties that one list shows."""
_SPELLINGS = 8
"""Things whose ids are looked for in other spellings; of longer lists names alone are."""

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)


class TooMany(Exception):
    """There is more than one answer reads. The argument says how many, where it is known."""


class TwinReader:
    """Reads on behalf of one caller, for one answer."""

    def __init__(self, neighbours: Neighbours, who: Principal, schema: Schema) -> None:
        self._neighbours, self._who, self.schema = neighbours, who, schema
        self._places = asyncio.Semaphore(_SIDE_BY_SIDE)
        self._statements: dict[str, None] = {}

    @property
    def statements(self) -> tuple[str, ...]:
        """What was read, each statement once."""
        return tuple(self._statements)

    async def _ask(self, rpc: Rpc[In, Out], request: In) -> Out:
        async with self._places:
            found = await self._neighbours.ask(self._who, rpc, request)
        if statement := getattr(found, "statement", ""):
            self._statements.setdefault(statement)
        return found

    async def survey(self, question: Survey) -> Surveyed:
        """Count, add up, group or list. Raises `ServiceError`, `TooMany`: it has more conditions than one survey takes."""
        if len(question.where) > _CONDITIONS:
            raise TooMany
        return await self._ask(SURVEY, question)

    async def years_of(self, type: str, years: tuple[int, ...]) -> tuple[int, ...]:
        """Years as a survey takes them: of very many, those that have data. Raises `TooMany`: those are too many as well."""
        if len(years) <= _YEARS:
            return years
        covered = await self.years(type)
        if len(covered) > _YEARS:
            raise TooMany
        return tuple(year for year in years if year in covered) or years[:_YEARS]

    async def groups(self, question: Survey) -> Surveyed:
        """Every group of a set. Raises `TooMany`: there are more than 500."""
        found = await self.survey(question.model_copy(update={"limit": MAX_ROWS}))
        if len(found.rows) == MAX_ROWS:
            raise TooMany
        return found

    async def count(self, question: Survey) -> int:
        """How many nodes a set has."""
        return (await self.survey(question)).total

    async def every(self, question: Survey, show: tuple[str, ...] = ()) -> list[Row]:
        """All members of a set with some properties, page by page. Raises `TooMany`: it has more than 3,000."""
        parts = [show[at : at + _SHOWN] for at in range(0, len(show), _SHOWN)] or [()]
        lists = await asyncio.gather(*(self._pages(question.model_copy(update={"show": part})) for part in parts))
        found = {(row["id"], row["year"]): row for row in lists[0]}
        for rows in lists[1:]:
            for row in rows:
                found.get((row["id"], row["year"]), {}).update(row)
        return list(found.values())

    async def _pages(self, question: Survey) -> list[Row]:
        rows: list[Row] = []
        after: str | None = None
        while True:
            page = await self.survey(question.model_copy(update={"measure": "list", "limit": MAX_ROWS, "after": after}))
            if page.total > MAX_MEMBERS:
                raise TooMany(page.total)
            rows += page.rows
            after = page.next
            if after is None:
                return rows

    async def diagnose(self, questions: Sequence[GapQuestion]) -> dict[str, Gap]:
        """The gaps that there are, by question. Raises `TooMany`."""
        if len(questions) > MAX_QUESTIONS:
            raise TooMany(len(questions))
        parts = [tuple(questions[at : at + GAPS_AT_ONCE]) for at in range(0, len(questions), GAPS_AT_ONCE)]
        found = await asyncio.gather(*(self._ask(DIAGNOSE_GAPS, DiagnoseGaps(questions=part)) for part in parts))
        return {gap.question: gap for diagnosed in found for gap in diagnosed.gaps}

    async def links(
        self,
        keys: Sequence[str],
        relationships: tuple[str, ...] = (),
        types: tuple[str, ...] = (),
        forward: bool | None = None,
    ) -> list[Link]:
        """What nodes are linked to. Raises `TooMany`: more than 2,000 links of 500 nodes."""
        parts = [tuple(keys[at : at + MAX_ROWS]) for at in range(0, len(keys), MAX_ROWS)]
        asked = (
            LinksOf(keys=part, relationships=relationships, types=types, forward=forward, limit=MAX_LINKS) for part in parts
        )
        found = await asyncio.gather(*(self._ask(LINKS, question) for question in asked))
        if any(one.truncated for one in found):
            raise TooMany
        return [link for one in found for link in one.links]

    async def walked(self, chain: str, year: int, level: Level) -> bool:
        """Whether anything reaches the end of a chain in a year and on a level."""
        run = await self._ask(RUN_CHAIN, RunChain(chain=chain, year=year, level=level, limit=1))
        return any(path.whole for path in run.paths)

    async def years(self, type: str, level: Level | None = None) -> tuple[int, ...]:
        """The years in which there is anything of a type."""
        found = await self.survey(Survey(type=type, level=level, group_by=(GroupBy(property="year"),)))
        return tuple(sorted(int(row["group"]) for row in found.rows))

    async def ids(self, entities: Sequence[EntityRef]) -> dict[EntityRef, tuple[str, ...]]:
        """The ids of things: one thing may have another id in another year, under the same name or spelt differently."""
        by_type: dict[str, list[EntityRef]] = defaultdict(list)
        for entity in entities:
            by_type[entity.type].append(entity)
        asked = [Survey(type=type, where=(_named(of),)) for type, of in by_type.items()]
        if len(entities) <= _SPELLINGS:
            asked += [Survey(type=one.type, where=(Where(property="id", op="contains", value=one.id),)) for one in entities]
        asked = [one.model_copy(update={"measure": "list", "limit": MAX_ROWS}) for one in asked]
        pages = await asyncio.gather(*(self.survey(question) for question in asked))
        stands: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        names: dict[tuple[str, str], set[str]] = defaultdict(set)
        for question, page in zip(asked, pages, strict=True):
            for row in page.rows:
                stands[question.type][row["id"]].add(int(row["year"]))
                names[question.type, row["id"]].add(str(row["name"]).casefold())
        return {one: _ids_of(one, stands[one.type], names) for one in entities}

    async def standing(
        self, ids: Mapping[EntityRef, tuple[str, ...]], years: tuple[int, ...]
    ) -> dict[EntityRef, dict[int, str]]:
        """Under which id each thing stands in each of some years."""
        types = {one.type for one in ids}
        found: dict[tuple[str, str], set[int]] = defaultdict(set)
        for type in types:
            every = tuple(dict.fromkeys(id for one, its in ids.items() if one.type == type for id in its))
            asked = await self.years_of(type, years)
            question = Survey(type=type, years=asked, where=(Where(property="id", op="in", value=every),))
            for row in await self.every(question):
                found[type, str(row["id"])].add(int(row["year"]))
        return {one: {year: id for id in reversed(its) for year in found[one.type, id]} for one, its in ids.items()}

    async def _nested(self, one: Filter, years: tuple[int, ...]) -> Where:
        """A condition on linked nodes by what those are linked to: they are looked for first."""
        assert one.via is not None, "only linked nodes have conditions of their own"
        assert one.to is not None, "conditions of linked nodes need their type"
        inner = Survey(type=one.to, years=years, where=tuple(condition(each) for each in one.where))
        ids = tuple(dict.fromkeys(str(row["id"]) for row in await self.every(inner))) or ("",)
        return Where(property="id", op="in", value=ids, via=one.via, to=one.to, negated=one.op == "unlinked")

    async def survey_of(
        self, selection: Selection, *, years: tuple[int, ...] | None = None, without: Filter | None = None
    ) -> Survey:
        """A set as a survey that counts it; its things are given by all their ids."""
        asked = await self.years_of(selection.type, selection.years if years is None else years)
        kept = [one for one in selection.filters if one is not without]
        where = [await self._nested(one, asked) if any(each.via for each in one.where) else condition(one) for one in kept]
        if selection.among:
            ids = await self.ids(selection.among)
            every = tuple(dict.fromkeys(id for of_one in ids.values() for id in of_one))
            where.append(Where(property="id", op="in", value=every))
        question = Survey(type=selection.type, years=asked, level=selection.level)
        return question.model_copy(update={"where": tuple(where)})


def condition(one: Filter) -> Where:
    """A filter as the graph has it. What is not so of linked nodes means that there is no linked node of which it is so."""
    given: dict[str, Any] = {"property": one.property, "op": one.op, "value": one.value, "via": one.via, "to": one.to}
    if one.op in ("linked", "unlinked"):
        linked = [{"property": each.property, "op": each.op, "value": each.value} for each in one.where]
        given |= {"property": "id", "value": None, "linked": linked}
    elif one.op == "<>" and one.via is not None:
        given |= {"op": "=", "negated": True}
    return Where.model_validate(given)


def _named(entities: Iterable[EntityRef]) -> Where:
    return Where(property="name", op="in", value=tuple(dict.fromkeys(one.name for one in entities)))


def _ids_of(entity: EntityRef, stands: dict[str, set[int]], names: dict[tuple[str, str], set[str]]) -> tuple[str, ...]:
    """Two nodes of one year are two things, whatever they are called."""
    found, years = [entity.id], set(stands.get(entity.id, ()))
    for id, its in sorted(stands.items(), key=lambda item: (item[0].casefold() != entity.id.casefold(), item[0])):
        alike = id.casefold() == entity.id.casefold() or entity.name.casefold() in names[entity.type, id]
        if id != entity.id and alike and not its & years:
            found.append(id)
            years |= its
    return tuple(found)


log = logging.getLogger(__name__)

_TENANTS = 32
"""Tenants whose words are kept at most; the one that was longest not asked for goes first."""
_FRESH = 600.0
"""Seconds for which a vocabulary is good without news of a change: news can be lost while the broker is away."""
_AT_MOST_EVERY = 2.0
"""Seconds between two readings for one tenant, however many changes are announced: a load announces thousands."""
_PAGES = 25
"""Pages of names that are read: 50,000 nodes."""
_TRIES = 3
_LOCKS = 16
"""Readings that may run side by side; two tenants seldom share one."""


@dataclass
class _Kept:
    view: VocabularyView
    at: float
    stale: bool = False
    lexicons: dict[str, Lexicon] = field(default_factory=dict)


class Vocabularies:
    """One of it for a process.

    Args:
        neighbours: whom the graph is asked by; not those of one turn, whose record a vocabulary would fill.
    """

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._of: OrderedDict[str, _Kept] = OrderedDict()
        self._changes = 0
        self._locks = tuple(asyncio.Lock() for _ in range(_LOCKS))

    def drop(self, tenant: str) -> None:
        """Read the tenant's words anew before its next question."""
        if (kept := self._of.get(tenant)) is not None:
            kept.stale = True
        self._changes += 1

    def ontology_version(self, tenant: str) -> str:
        """The version of a tenant's ontology as it was read last; empty where nobody has asked yet."""
        kept = self._of.get(tenant)
        return kept.view.ontology.version if kept is not None else ""

    async def on_node_changed(self, news: News, event: NodeChanged) -> None:
        """Nodes of a tenant changed: its names and values may have."""
        self.drop(news.tenant)

    async def on_ontology_changed(self, news: News, event: OntologyChanged) -> None:
        """A tenant's ontology changed."""
        self.drop(news.tenant)

    async def lexicon(self, who: Principal, language: Language) -> Lexicon | None:
        """The words of the caller's twin in a language; `None` where the caller may not read the twin.

        Raises:
            ServiceError: the graph cannot be asked, and no earlier vocabulary is at hand.
        """
        if not who.acts_as(READERS):
            return None
        async with self._locks[hash(who.tenant) % _LOCKS]:
            kept = await self._current(who)
            if language.name not in kept.lexicons:
                kept.lexicons[language.name] = await asyncio.to_thread(Lexicon.build, kept.view, language)
        return kept.lexicons[language.name]

    async def _current(self, who: Principal) -> _Kept:
        kept, now = self._of.get(who.tenant), time.monotonic()
        if kept is not None:
            self._of.move_to_end(who.tenant)
            due = kept.stale or now - kept.at > _FRESH
            if not due or now - kept.at < _AT_MOST_EVERY:
                return kept
        changes = self._changes
        try:
            view = await self._read(who)
        except ServiceError as error:
            if kept is None:
                raise
            log.warning("the words of the twin are an older reading: %s", error.code)
            return kept
        fresh = _Kept(view, time.monotonic(), stale=changes != self._changes)  # what changed meanwhile may be missing
        self._of[who.tenant] = fresh
        self._of.move_to_end(who.tenant)
        if len(self._of) > _TENANTS:
            self._of.popitem(last=False)
        return fresh

    async def _read(self, who: Principal) -> VocabularyView:
        """All pages of one version; begun again where the ontology changed between two of them."""
        for _ in range(_TRIES):
            pages = [await self._neighbours.ask(who, VOCABULARY, AskVocabulary())]
            while pages[-1].next is not None and len(pages) < _PAGES:
                page = await self._neighbours.ask(who, VOCABULARY, AskVocabulary(after=pages[-1].next))
                pages.append(page)
            if len({page.version for page in pages}) == 1:
                break
        if pages[-1].next is not None:
            log.warning("the twin has more names than are read; those beyond %d pages are found by search alone", _PAGES)
        return VocabularyView.of(pages)
