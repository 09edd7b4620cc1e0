"""What a thing touches: its direct links, and the chains that begin at it, every hop by name."""

from __future__ import annotations

from typing import Any

from phronesis_contracts.graph import Level
from phronesis_contracts.twin import ChainPath, Survey, Where

from .calendar import Years, listed
from .findings import Findings
from .fitting import Named
from .ontology import CHAINS, JOINS, called
from .problems import Declined
from .saying import counted, lines, table
from .story import rows_of
from .twin import Twin

_SHOWN = 50
"""Linked things of one kind that are listed."""


async def impact(twin: Twin, named: Named, known: tuple[int, ...], years: Years) -> Findings:
    """Direct links, then chains, in one year."""
    there = tuple(int(row["year"]) for row in await rows_of(twin, named, known, ()))
    year = years.asked[-1] if years.stated else (there or known)[-1]
    if year not in there:
        raise Declined(f"“{named.name}” is not there in {year}; it is in {listed(there)}.", mode="B")
    links = [row for name in JOINS for row in await _links(twin, named, year, name)]
    walks = [
        row for chain, (types, _) in CHAINS.items() if named.type in types for row in await _walks(twin, named, year, chain)
    ]
    broken = sum(1 for row in walks if row["reaches its end"] == "no")
    if not links and not walks:
        return Findings(
            f"In {year}, no link of **{named.name}** to anything else is on record, so its impact cannot be told from data.",
            gaps=1,
            several_steps=True,
        )
    charts = [table(title, rows) for title, rows in (("Chains", walks), ("Direct links", links)) if rows]
    insights = (f"{counted(broken, 'walk stops', 'walks stop')} before the end of the chain.",) if broken else ()
    return Findings(
        _told(named, year, links, walks),
        insights,
        (*links, *walks),
        {"links": len(links), "walks": len(walks), "broken": broken},
        tuple(charts),
        gaps=1 if broken else 0,
        several_steps=True,
    )


def _told(named: Named, year: int, links: list[dict[str, Any]], walks: list[dict[str, Any]]) -> str:
    parts = [f"In {year}, **{named.name}** has {counted(len(links), 'direct link', 'direct links')}."]
    if links:
        parts.append(lines(f"{row['from']} {row['link']} {row['to']}" for row in links))
    if walks:
        ways = lines(f"{row['steps']}{'' if row['reaches its end'] == 'yes' else ' (stops here)'}" for row in walks)
        parts.append(f"Along the chains:\n\n{ways}")
    return "\n\n".join(parts)


async def _links(twin: Twin, named: Named, year: int, name: str) -> list[dict[str, Any]]:
    sources, targets, verb = JOINS[name]
    outward = named.type in sources
    if not outward and named.type not in targets:
        return []
    found: list[dict[str, Any]] = []
    for other in targets if outward else sources:
        where = (Where(property="id", op="in", value=named.ids, via=name, to=named.type),)
        page = await twin.survey(Survey(type=other, years=(year,), where=where, measure="list", limit=_SHOWN))
        for row in page.rows:
            ends = (named.name, row["name"]) if outward else (row["name"], named.name)
            found.append({"from": ends[0], "link": verb, "to": ends[1], "kind": called(other, many=False)})
    return found


async def _walks(twin: Twin, named: Named, year: int, chain: str) -> list[dict[str, Any]]:
    run = await twin.chain(chain, year, Level(named.level), named.type, named.ids[-1])
    return [
        {"chain": CHAINS[chain][1], "steps": _steps(path), "reaches its end": "yes" if path.whole else "no"}
        for path in run.paths
        if len(path.nodes) > 1
    ]


def _steps(path: ChainPath) -> str:
    said = path.nodes[0].name
    for name, node in zip(path.relationships, path.nodes[1:], strict=False):
        said += f" {JOINS[name][2]} {node.name}" if name in JOINS else f" → {node.name}"
    return said
