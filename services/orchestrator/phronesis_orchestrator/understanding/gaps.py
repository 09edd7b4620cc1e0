"""What should be on record and is not: links, the ends of chains, nodes of a year, and properties that are not published.

What an ontology allows is not yet what a twin holds. So where everything is asked for, only that counts as missing which the
twin has for other things of the same type, level and year: links of a type that none has, properties that nobody publishes and
chains that nothing walks to the end are not what anybody left out.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from phronesis_contracts.twin import Gap, GapQuestion, GapType, Level, NodeRef, Survey, Where

from .finding import Finding, Note, Row
from .plan import Gaps, Selection
from .reader import MAX_MEMBERS, TooMany, TwinReader
from .sets import keys_of, nothing, things_of

UNPUBLISHED = "unpublished"
"""The kind of a gap that is no gap of the graph: a property without a value."""
_CHAINED = 200
"""Members of a set up to which all its chains are walked where nothing special is asked for."""


@dataclass(frozen=True)
class _Members:
    """Things of one type whose gaps are looked for."""

    type: str
    rows: tuple[Row, ...]
    """`id`, `name`, `year`, `level` and the declared properties."""

    @property
    def years(self) -> tuple[int, ...]:
        return tuple(sorted({int(row["year"]) for row in self.rows}))

    @property
    def levels(self) -> set[str]:
        return {str(row["level"]) for row in self.rows}

    def survey(self) -> Survey:
        """The members as a set, and whatever else has their ids or years."""
        ids = tuple(dict.fromkeys(str(row["id"]) for row in self.rows))
        # A long list of ids costs more than to read what else there is in these years.
        among = (Where(property="id", op="in", value=ids),) if len(ids) <= _CHAINED else ()
        return Survey(type=self.type, years=self.years, where=among)


async def gaps(plan: Gaps, twin: TwinReader) -> Finding:
    """What is missing for things or for the members of a set."""
    members, absent = await _members(plan, twin)
    if not any(one.rows for one in members):
        if plan.of is not None and not plan.entities:
            return await nothing(plan.of.model_copy(update={"years": plan.years}), twin)
        years = tuple(sorted({year for one in plan.entities for year in one.years}))
        return Finding(outcome="empty", absent=tuple(absent), entities=plan.entities, years=years, gaps=1)
    parts = await asyncio.gather(*(_of_type(one, plan, twin) for one in members if one.rows))
    rows = [*absent, *(row for part, _ in parts for row in part)]
    if len(rows) > MAX_MEMBERS:
        raise TooMany(len(rows))
    rows.sort(key=lambda row: (str(row["name"]).casefold(), row["year"], row["kind"], str(row.get("relationship"))))
    lacking = {(row["type"], row["id"], row["year"]) for row in rows}
    total = sum(len(one.rows) for one in members) + len(absent)
    types = dict.fromkeys(str(row["type"]) for row in rows)
    return Finding(
        outcome="found" if rows else "empty",
        holds=bool(rows),
        rows=tuple(rows),
        value=len(lacking),
        total=total,
        known=total - len(lacking) or 1,
        unknown=sum(row["kind"] == UNPUBLISHED for row in rows),
        gaps=len({row["kind"] for row in rows}),
        years=tuple(sorted({year for one in members for year in one.years})),
        absent=tuple(absent),
        entities=plan.entities or tuple(thing for type in types for thing in things_of(type, _of(type, rows))),
        sources=tuple(key for type in types for key in keys_of(type, _of(type, rows)))[:60],
        notes=tuple(note for _, notes in parts for note in notes),
    )


def _of(type: str, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["type"] == type]


async def _members(plan: Gaps, twin: TwinReader) -> tuple[list[_Members], list[Row]]:
    """What is asked about, by type; and the years in which a named thing is not on record though it is in others."""
    if plan.entities:
        ids = await twin.ids(plan.entities)
        stands = await twin.standing(ids, plan.years)
        sets = {}
        for type in dict.fromkeys(one.type for one in plan.entities):
            every = tuple(dict.fromkeys(id for one, its in ids.items() if one.type == type for id in its))
            years = await twin.years_of(type, plan.years)
            sets[type] = Survey(type=type, years=years, where=(Where(property="id", op="in", value=every),))
        absent = [
            {**_row(one.type, {"id": one.id, "name": one.name, "year": year}), "kind": GapType.TEMPORAL.value}
            for one, by_year in stands.items()
            for year in sorted(plan.years)
            if year not in by_year
        ]
        narrow = plan.relationship or plan.to or plan.chain or plan.properties
        absent = [] if narrow and any(stands.values()) else absent
    else:
        of = plan.of or Selection(type=twin.schema.view.types[0].name, years=plan.years)
        sets, absent = {of.type: await twin.survey_of(of, years=plan.years)}, []
    return [_Members(type, tuple(await twin.every(one, _needed(plan, type, twin)))) for type, one in sets.items()], absent


def _needed(plan: Gaps, type: str, twin: TwinReader) -> tuple[str, ...]:
    if plan.relationship or plan.to or plan.chain:
        return ("level",)
    declared = [one.name for one in twin.schema.properties(type)]
    return ("level", *(name for name in plan.properties or declared if name in declared))


def _row(type: str, member: Row) -> Row:
    return {"type": type, "id": member["id"], "name": member["name"], "year": member["year"]}


async def _of_type(of: _Members, plan: Gaps, twin: TwinReader) -> tuple[list[Row], tuple[Note, ...]]:
    if plan.properties:
        declared = [one.name for one in twin.schema.properties(of.type)]
        return _unpublished(of, [name for name in plan.properties if name in declared]), ()
    if plan.chain is not None:
        if plan.chain not in [one.name for one in twin.schema.chains_of(of.type)]:
            return [], (Note("no_such_chain", {"chain": plan.chain, "type": of.type}),)
        return await _broken(of, (plan.chain,), twin), ()
    if plan.relationship is not None or plan.to is not None:
        names = (plan.relationship,) if plan.relationship else twin.schema.between(of.type, str(plan.to))
        names = tuple(one for one in names if twin.schema.leads_to(of.type, one))
        if not names or (plan.to is not None and not any(plan.to in twin.schema.leads_to(of.type, one) for one in names)):
            return [], (Note("no_such_link", {"type": of.type, "to": plan.to, "relationship": plan.relationship}),)
        return await _unlinked(of, names, plan.to, twin), ()
    return await _everything(of, twin), ()


def _unpublished(of: _Members, names: Sequence[str]) -> list[Row]:
    return [
        {**_row(of.type, member), "kind": UNPUBLISHED, "property": name}
        for member in of.rows
        for name in names
        if member[name] is None
    ]


async def _unlinked(of: _Members, names: tuple[str, ...], to: str | None, twin: TwinReader) -> list[Row]:
    """The members without any of these links. Why they have none, the graph's own diagnosis says."""
    wanted = [one for one in names if to is None or to in twin.schema.leads_to(of.type, one)]
    lacking = [Where(property="id", op="unlinked", via=name, to=to) for name in wanted]
    question = of.survey()
    found = await twin.every(question.model_copy(update={"where": (*question.where, *lacking)}))
    without = {(row["id"], row["year"]) for row in found}
    members = [member for member in of.rows if (member["id"], member["year"]) in without]
    asked = {str(n): _question(str(n), of.type, member, relationship=wanted[0]) for n, member in enumerate(members)}
    why = await twin.diagnose(list(asked.values())) if len(wanted) == 1 else {}
    return [
        {
            **_row(of.type, member),
            **{"kind": why[str(n)].type.value if str(n) in why else GapType.DIRECT.value, "relationship": wanted[0]},
            **{"relationships": tuple(wanted), "to": (to,) if to else twin.schema.leads_to(of.type, wanted[0])},
        }
        for n, member in enumerate(members)
    ]


def _question(id: str, type: str, member: Row, *, relationship: str | None = None, chain: str | None = None) -> GapQuestion:
    node = NodeRef(type=type, id=member["id"], year=member["year"])
    return GapQuestion(id=id, node=node, level=Level(member["level"]), relationship=relationship, chain=chain)


async def _broken(of: _Members, chains: Sequence[str], twin: TwinReader) -> list[Row]:
    asked = {f"{n} {chain}": (member, chain) for n, member in enumerate(of.rows) for chain in chains}
    found = await twin.diagnose([_question(id, of.type, member, chain=chain) for id, (member, chain) in asked.items()])
    return [
        {**_row(of.type, asked[id][0]), "kind": gap.type.value, "chain": asked[id][1], **_step(gap)}
        for id, gap in found.items()
    ]


def _step(gap: Gap) -> Row:
    """The step of a chain that is missing, and after which node: `RELATIONSHIP | OTHER -> NodeType | OTHER`."""
    names, arrow, targets = gap.missing_step.partition(" -> ")
    split = {"relationships": tuple(names.split(" | ")), "to": tuple(targets.split(" | "))} if arrow else {"step": names}
    return {"last": gap.last_node, **split}


async def _everything(of: _Members, twin: TwinReader) -> list[Row]:
    """What others of the type have and a member has not."""
    names = twin.schema.relationships_of(of.type)
    had = await _had_by_all(of, twin)
    maybe = tuple(name for name in names if name not in had)
    open_properties = tuple(
        one.name for one in twin.schema.properties(of.type) if any(member[one.name] is None for member in of.rows)
    )
    used, published = await asyncio.gather(
        _which(of, {name: Where(property="id", op="linked", via=name) for name in maybe}, twin),
        _which(of, {name: Where(property=name, op="known") for name in open_properties}, twin),
    )
    chains = await _walked(of, {*had, *used}, twin) if len(of.rows) <= _CHAINED else ()
    found = await asyncio.gather(*(_unlinked(of, (name,), None, twin) for name in used))
    broken = await _broken(of, chains, twin) if chains else []
    return [*(row for rows in found for row in rows), *broken, *_unpublished(of, published)]


async def _had_by_all(of: _Members, twin: TwinReader) -> set[str]:
    """Relationship types that each of a few members has; of many, none is looked for."""
    keys = [f"{of.type}/{member['id']}/{member['year']}" for member in of.rows]
    if len(keys) > _CHAINED:
        return set()
    try:
        links = await twin.links(keys)
    except TooMany:
        return set()
    having: dict[str, set[str]] = defaultdict(set)
    for link in links:
        having[link.relationship].add(link.node)
    return {name for name, nodes in having.items() if len(nodes) == len(keys)}


async def _which(of: _Members, conditions: Mapping[str, Where], twin: TwinReader) -> tuple[str, ...]:
    """The conditions that something of the type meets on the levels and in the years of the members."""
    level = Level(next(iter(of.levels))) if len(of.levels) == 1 else None
    asked = [Survey(type=of.type, years=of.years, level=level, where=(where,), limit=1) for where in conditions.values()]
    counts = await asyncio.gather(*(twin.count(question) for question in asked))
    return tuple(name for name, n in zip(conditions, counts, strict=True) if n)


async def _walked(of: _Members, used: set[str], twin: TwinReader) -> tuple[str, ...]:
    """The chains that something reaches the end of; what has no first step is not walked."""
    chains = [
        chain.name
        for chain in twin.schema.chains_of(of.type)
        if used
        & {
            name
            for types, names in zip(chain.steps[::2], chain.steps[1::2], strict=False)
            if of.type in types
            for name in names
        }
    ]
    places = [(chain, year, Level(level)) for chain in chains for year in of.years for level in of.levels]
    found = await asyncio.gather(*(twin.walked(*place) for place in places))
    return tuple(dict.fromkeys(place[0] for place, whole in zip(places, found, strict=True) if whole))
