"""Things, their links, their gaps, and what there is at all, said."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from phronesis_contracts.answers import GAPS_TITLE

from ..agents.presentation import draw_column, draw_line, draw_table
from .finding import Finding, Row
from .gaps import UNPUBLISHED
from .plan import Coverage, Describe, Gaps, Relate
from .wording import Wording, Written, capitalized, plain

_NAMED = 5
"""Names in one line."""
_SHORT = 240
"""Characters of each text where everything on record is told."""


def _name(words: Wording) -> str:
    return words.property(None, "name")


def _year(words: Wording) -> str:
    return words.property(None, "year")


def _absent(finding: Finding, words: Wording) -> list[str]:
    """Which things are not on record in which years, and where they are."""
    years: dict[str, list[int]] = defaultdict(list)
    for row in finding.absent:
        years[row["name"]].append(row["year"])
    there = {one.name: tuple(year for year in one.years if year not in years.get(one.name, ())) for one in finding.entities}
    return [
        words.sentence(
            "describe/absent_elsewhere" if there.get(name) else "describe/absent",
            name=name,
            in_years=words.in_years(its),
            years=words.years(its),
            elsewhere=words.in_years(there.get(name) or its),
            elsewhere_years=words.years(there.get(name) or its),
        )
        for name, its in years.items()
    ]


def say_described(finding: Finding, plan: Describe, words: Wording) -> Written:
    """The facts, thing by thing; of a yes-or-no question the answer first."""
    if not finding.rows:
        said = [words.phrase("denied")] if plan.exists else []
        return Written("\n\n".join((*said, *_absent(finding, words))), stats={"years": list(finding.years)})
    by_thing: dict[int, list[Row]] = defaultdict(list)
    for row in finding.rows:
        by_thing[row["thing"]].append(row)
    asked = bool(plan.properties) or plan.expect is not None or plan.direction is not None
    told = [_thing(rows, finding, asked, words) for rows in by_thing.values()]
    if (verdict := _verdict(finding, plan, words)) and "\n" not in told[0]:
        told[0], verdict = f"{verdict} {told[0]}", ""
    rows = tuple(
        {
            **{_name(words): row["name"], _year(words): row["year"]},
            **{words.heading(row["type"], name): plain(row.get(name), words) for name in finding.show if name in row},
        }
        for row in finding.rows
    )
    title = words.listed(dict.fromkeys(str(row["name"]) for row in finding.rows))
    drawn = [draw_table(title, rows)]
    for name in finding.show if len(by_thing) == 1 else ():
        heading = words.heading(finding.rows[0]["type"], name)
        figures = [row for row in rows if isinstance(row.get(heading), int | float)]
        drawn += [draw_line(heading, _year(words), heading, rows)] if len(figures) > 1 and asked else []
    parts = [*([verdict] if verdict else []), *told, *_absent(finding, words)]
    return Written("\n\n".join(parts), (), rows, {"things": len(by_thing)}, tuple(drawn))


def _thing(rows: Sequence[Row], finding: Finding, asked: bool, words: Wording) -> str:
    last = rows[-1]
    if asked and not finding.show and finding.links:
        year = words.years([row["year"] for row in rows[-1:]])
        links = [link for link in finding.links if link["thing"] == last["thing"]]
        return "; ".join(_link(link, last["name"], year, words) for link in links)
    if asked:
        facts = {row["year"]: _facts(row, finding.show, words) for row in rows}
        if len(rows) == 1:
            return words.sentence("describe/facts", name=last["name"], year=last["year"], facts=facts[last["year"]])
        told = words.lines(words.phrase("describe/year_line", year=year, facts=fact) for year, fact in facts.items())
        trends = (_trend(rows, name, words) for name in finding.show)
        return "\n\n".join((words.phrase("describe/over_years", name=last["name"]), told, *filter(None, trends)))
    lines, changing = [], _changing(rows, finding.show, words)
    if changing:
        lines += [words.phrase("describe/year_line", year=row["year"], facts=_facts(row, changing, words)) for row in rows]
    same = [name for name in finding.show if last.get(name) is not None and name not in changing]
    # The texts of a thing are worded anew each year; its course over the years is told without them.
    lines += [_line(last, name, words) for name in same if len(rows) == 1 or not words.schema.is_text(last["type"], name)]
    for link in finding.links:
        if link["thing"] == last["thing"]:
            verb = words.verb(link["relationship"], link["forward"])
            names = words.some(link["names"], _NAMED, link["n"])
            lines.append(words.phrase("relate/line", verb=f"{verb} ({words.type(link['type'], n=link['n'])})", names=names))
    year = last["year"] if len(rows) == 1 else words.years([row["year"] for row in rows])
    head = words.phrase("describe/head", name=last["name"], year=year)
    return f"{head}\n\n{words.lines(lines)}" if lines else f"{head} {words.phrase('describe/nothing_else')}."


def _trend(rows: Sequence[Row], name: str, words: Wording) -> str:
    """By how much a figure changed from the first year that has it to the last."""
    known = [row for row in rows if isinstance(row.get(name), int | float)]
    if len(known) < 2 or known[0]["year"] == known[-1]["year"]:
        return ""
    first, last = known[0], known[-1]
    return words.trend(last["type"], name, (first["year"], first[name]), (last["year"], last[name]))


def _link(link: Row, name: str, year: str, words: Wording) -> str:
    names = words.some([f"**{each}**" for each in link["names"]], _NAMED, link["n"])
    return words.sentence(
        "relate/one", name=name, year=year, verb=words.verb(link["relationship"], link["forward"]), names=names
    )


def _changing(rows: Sequence[Row], names: Sequence[str], words: Wording) -> list[str]:
    """Properties that did not stay the same; texts are none of them."""
    type = rows[-1]["type"]
    return [name for name in names if len({row.get(name) for row in rows}) > 1 and not words.schema.is_text(type, name)]


def _line(row: Row, name: str, words: Wording) -> str:
    text = words.schema.is_text(row["type"], name)
    value = words.quote(str(row[name]), _SHORT) if text else words.value(row["type"], name, row.get(name))
    return words.phrase("describe/line", property=words.property(row["type"], name), value=value)


def _facts(row: Row, names: Sequence[str], words: Wording) -> str:
    said = []
    for name in names:
        if name not in row:
            continue
        value, what = row[name], words.property(row["type"], name)
        key = "fact_unknown" if value is None else "text" if words.schema.is_text(row["type"], name) else "fact"
        shown = words.value(row["type"], name, value)
        said.append(words.phrase(f"describe/{key}", property=what, value=shown, text=shown))
    return "; ".join(said) or words.phrase("describe/nothing_else")


def _verdict(finding: Finding, plan: Describe, words: Wording) -> str:
    if plan.exists:
        return words.phrase("affirmed")
    if plan.expect is None and plan.direction is None:
        return ""
    if plan.when in ("first", "last"):
        if finding.when is None:
            return words.sentence("describe/never")
        return words.sentence(f"describe/{plan.when}", in_years=words.in_years((finding.when,)))
    answer = words.phrase("undecided_answer" if finding.holds is None else "affirmed" if finding.holds else "denied")
    if plan.expect is not None and finding.holds and len(plan.years) > 1:
        holding = words.sentence("describe/holds_in", len(finding.years), years=words.years(finding.years))
        return f"{answer} {holding}"
    return answer


def say_links(finding: Finding, plan: Relate, words: Wording) -> Written:
    """What a thing is linked to, or the way to another."""
    if finding.absent:
        return Written("\n\n".join(_absent(finding, words)))
    values = {"year": plan.year, "name": plan.source.name}
    if plan.target is not None:
        ends = {"from": plan.source.name, "to": plan.target.name, "year": plan.year}
        if finding.outcome == "no_way":
            return Written(words.sentence("relate/no_way", finding.total, **ends))
        steps = [
            words.phrase(
                "relate/step", **{"from": row["from"], "to": row["name"]}, verb=words.verb(row["relationship"], row["forward"])
            )
            for row in finding.links
        ]
        head = words.sentence("relate/way", len(steps), **ends)
        return Written(f"{head}\n\n{words.lines(steps)}", rows=_link_rows(finding.links, words), stats={"steps": len(steps)})
    if not finding.rows:
        narrow = plan.relationship or plan.to
        return Written(words.sentence("relate/none" if narrow else "relate/none_at_all", **values), stats={"count": 0})
    kinds: dict[str, list[str]] = defaultdict(list)
    for row in finding.rows:
        verb = words.verb(row["relationship"], row["forward"])
        kinds[verb if plan.relationship else f"{verb} ({words.type(row['type'], row['level'])})"].append(str(row["name"]))
    rows = _link_rows(finding.rows, words)
    drawn = (draw_table(words.phrase("relate/title", **values), rows),)
    stats = {"count": len(finding.rows)}
    if plan.count:
        head = words.sentence("relate/count", len(finding.rows), **values)
        shown = [words.phrase("relate/line", verb=verb, names=words.some(its, _NAMED)) for verb, its in kinds.items()]
        return Written(f"{head}\n\n{words.lines(shown)}", (), rows, stats, drawn)
    if len(kinds) == 1:
        [(verb, names)] = kinds.items()
        if len(names) <= _NAMED:
            names = [f"**{name}**" for name in names]
            return Written(words.sentence("relate/one", verb=verb, names=words.listed(names), **values), (), rows, stats, drawn)
        head = f"{words.sentence('relate/head', **values)} {verb} ({words.number(len(names))}):"
        return Written(f"{head}\n\n{words.lines(names)}", (), rows, stats, drawn)
    lines = [words.phrase("relate/line", verb=verb, names=words.some(its, 10)) for verb, its in kinds.items()]
    return Written(f"{words.sentence('relate/head', **values)}\n\n{words.lines(lines)}", (), rows, stats, drawn)


def _link_rows(links: Sequence[Row], words: Wording) -> tuple[Row, ...]:
    columns = words.raw("relate/columns")
    return tuple(
        {
            columns["from"]: row["from"],
            columns["link"]: words.verb(row["relationship"], row["forward"]),
            _name(words): row["name"],
            columns["type"]: words.type(row["type"], n=1),
        }
        for row in links
    )


def say_gaps(finding: Finding, plan: Gaps, words: Wording) -> Written:
    """What is missing: of things one by one, of a set by what it is."""
    names = [one.name for one in plan.entities]
    of = plan.of if not names else None
    in_years = words.in_years(finding.years or plan.years)
    if not finding.rows:
        if of is not None:
            return Written(words.sentence("gaps/none", in_years=in_years, set=words.set(of)), stats={"missing": 0})
        return Written(words.sentence("gaps/none_of", name=words.listed(names)), stats={"missing": 0})
    columns = words.raw("gaps/columns")
    kinds = words.raw("gaps/kinds")
    said = [_missing(row, words) for row in finding.rows]
    rows = tuple(
        {_name(words): row["name"], _year(words): row["year"], columns["kind"]: kinds[row["kind"]], columns["what"]: what}
        for row, what in zip(finding.rows, said, strict=True)
    )
    stats = {"missing": len(rows), "lacking": int(finding.value or 0), "of": finding.total}
    drawn = (draw_table(GAPS_TITLE, rows),)
    if of is not None:
        counts = Counter((what, str(row["kind"])) for row, what in zip(finding.rows, said, strict=True))
        values = {"in_years": in_years, "total": words.number(finding.total), "set": words.set(of, finding.total)}
        lacking = int(finding.value or 0)
        if len({what for what, _ in counts}) == 1:
            unpublished = finding.rows[0]["kind"] == UNPUBLISHED
            what = words.phrase("describe/fact_unknown", property=said[0]) if unpublished else said[0]
            text = words.sentence("gaps/of_set_one", lacking, what=what, **values)
            lines = [f"{row['name']}{_in_year(row, finding)}" for row in finding.rows]
            return Written(text if plan.count else f"{text}\n\n{words.lines(lines)}", (), rows, stats, drawn)
        lines = [
            words.phrase("gaps/line_counted", n, what=what, kind=kinds[kind])
            for (what, kind), n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ]
        return Written(f"{words.sentence('gaps/of_set', lacking, **values)}\n\n{words.lines(lines)}", (), rows, stats, drawn)
    lines = [
        f"{row['name'] + ', ' if len(names) > 1 else ''}{row['year']}: "
        + words.phrase("gaps/line", what=what, kind=kinds[row["kind"]])
        for row, what in zip(finding.rows, said, strict=True)
    ]
    key = "gaps/head" if len(names) == 1 else "gaps/several"
    head = words.sentence(key, len(rows), name=names[0], names=words.listed(names))
    return Written(f"{head}\n\n{words.lines(lines)}", (), rows, stats, drawn)


def _in_year(row: Row, finding: Finding) -> str:
    return f" ({row['year']})" if len(finding.years) > 1 else ""


def _missing(row: Row, words: Wording) -> str:
    if "property" in row:
        return words.phrase("gaps/property", property=words.property(row["type"], row["property"]))
    if "relationship" in row:
        forward = row["type"] in words.schema.relationship(row["relationship"]).sources
        types = words.listed((words.type(one, n=1) for one in row["to"]), "or")
        return words.phrase("gaps/link", verb=words.verb(row["relationship"], forward), types=types)
    if "chain" not in row:
        return words.phrase("gaps/absent")
    if "step" in row:
        return words.phrase("gaps/other", step=row["step"])
    verbs = words.listed((words.verb(one, True) for one in row["relationships"]), "or")
    types = words.listed((words.type(one.partition("/")[0], n=1) for one in row["to"]), "or")
    last = row["last"]
    after = ""
    if last and not last.startswith(f"{row['type']}/{row['id']}/"):
        type, _, rest = last.partition("/")
        after = words.phrase("gaps/after", name=f"{words.type(type, n=1)} {rest.rpartition('/')[0]}")
    return words.phrase(
        "gaps/chain", chain=words.schema.chain_name(row["chain"], words.language), after=after, step=f"{verbs} {types}"
    )


def say_coverage(finding: Finding, plan: Coverage, words: Wording) -> Written:
    """What there is at all, or what a term of the ontology means."""
    if plan.about == "concept":
        return Written(_concept(plan, words))
    if finding.outcome == "empty":
        return Written(words.sentence("coverage/none"))
    title = words.phrase("coverage/title")
    if plan.about == "values" and plan.type is not None and plan.property is not None:
        return _values(finding, plan.type, plan.property, words)
    years = words.years(finding.years)
    if plan.about == "years":
        noun = words.type(plan.type) if plan.type else words.phrase("measures/count")
        rows = tuple({_year(words): row["group"], noun: row["value"]} for row in finding.rows)
        lines = [words.phrase("coverage/year_line", year=row["group"], n=words.number(row["value"])) for row in finding.rows]
        text = f"{words.sentence('coverage/years', years=years)}\n\n{words.lines(lines)}"
        return Written(text, (), rows, {"years": list(finding.years)}, (draw_column(title, _year(words), noun, rows),))
    lines = [
        words.phrase(
            "coverage/type_line",
            row["value"],
            year=row["years"][-1],
            type=words.type(row["type"], row["level"], row["value"]),
            years=words.years(row["years"]),
        )
        for row in finding.rows
    ]
    rows = tuple(
        {title: words.type(row["type"], row["level"]), words.phrase("measures/count"): row["value"]} for row in finding.rows
    )
    text = f"{words.sentence('coverage/types', years=years)}\n\n{words.lines(lines)}"
    return Written(text, (), rows, {"years": list(finding.years)}, (draw_table(title, rows),))


def _concept(plan: Coverage, words: Wording) -> str:
    schema = words.schema
    if plan.type is not None and plan.property is not None:
        return _property_meaning(plan.type, plan.property, words)
    if plan.type is not None:
        return _type_meaning(plan.type, words)
    if plan.term in [one.name for one in schema.view.chains]:
        steps = schema.chain(str(plan.term)).steps
        path = " → ".join(words.listed((words.type(one, n=1) for one in step), "or") for step in steps[::2])
        return words.sentence("concept/chain", chain=schema.chain_name(str(plan.term), words.language), path=path)
    if plan.term in [one.name for one in schema.view.relationships]:
        one = schema.relationship(str(plan.term))
        ends = {"sources": one.sources, "targets": one.targets}
        named = {key: words.listed((f"{words.type(type)} ({type})" for type in types), "or") for key, types in ends.items()}
        return words.sentence("concept/relationship", verb=words.verb(one.name, True), name=one.name, **named)
    if plan.term == "types":
        types = words.listed(f"{words.type(one.name)} ({one.name})" for one in schema.view.types)
        return words.sentence("concept/types", n=len(schema.view.types), names=types)
    if plan.term in words.raw("concept/gaps"):
        return words.sentence("concept/gap_kind", kind=plan.term, meaning=words.phrase(f"concept/gaps/{plan.term}"))
    names = {kind: f"{name} ({kind})" if kind[:1].isupper() else name for kind, name in words.raw("gaps/kinds").items()}
    kinds = [f"{name}: {words.phrase(f'concept/gaps/{kind}')}" for kind, name in names.items()]
    return f"{words.sentence('concept/gap')}\n\n{words.lines(kinds)}"


def _type_meaning(type: str, words: Wording) -> str:
    one, schema = words.schema.type(type), words.schema
    said = [words.sentence("concept/type", type=capitalized(words.type(type)))]
    if one.levels:
        said.append(
            words.sentence(
                "concept/levels", levels=words.listed(f"{words.type(type, level)} ({level})" for level in sorted(one.levels))
            )
        )
    if one.properties:
        said.append(
            words.sentence("concept/properties", names=words.listed(words.property(type, each.name) for each in one.properties))
        )
    links = [
        f"{words.verb(name, forward)} {words.listed((words.type(each) for each in ends), 'or')}"
        for name in schema.relationships_of(type)
        for forward, mine, ends in (
            (True, schema.relationship(name).sources, schema.relationship(name).targets),
            (False, schema.relationship(name).targets, schema.relationship(name).sources),
        )
        if type in mine and name != schema.view.hierarchy
    ]
    return " ".join(said) + (f"\n\n{words.sentence('concept/links')}\n\n{words.lines(links)}" if links else "")


def _property_meaning(type: str, name: str, words: Wording) -> str:
    one = words.schema.property(type, name)
    said = [words.sentence("concept/property", property=words.property(type, name), type=words.type(type))]
    if one.unit:
        said.append(words.sentence("concept/unit", unit=one.unit))
    if one.choices:
        said.append(words.sentence("concept/choices", values=words.listed(one.choices)))
    if one.lowest is not None and one.highest is not None:
        said.append(words.sentence("concept/range", low=words.number(one.lowest), high=words.number(one.highest)))
    if one.high_above is not None:
        said.append(words.sentence("concept/high", n=words.number(one.high_above)))
    return " ".join(said)


def _values(finding: Finding, type: str, name: str, words: Wording) -> Written:
    values = {"property": words.property(type, name), "type": words.type(type)}
    known = {"known": words.number(finding.known), "unknown": words.number(finding.unknown)}
    stats = {"known": finding.known, "not_published": finding.unknown}
    if finding.rows and "measure" in finding.rows[0]:
        low, high = (words.value(type, name, row["value"]) for row in finding.rows)
        return Written(words.sentence("coverage/span", low=low, high=high, **values, **known), stats=stats)
    if not finding.rows:
        return Written(words.sentence("coverage/text", **values, **known), stats=stats)
    count = words.phrase("measures/count")
    rows = tuple({values["property"]: plain(row["group"], words), count: row["value"]} for row in finding.rows)
    lines = [words.phrase("coverage/year_line", year=row[values["property"]], n=words.number(row[count])) for row in rows]
    title = capitalized(values["property"])
    drawn = (draw_column(title, values["property"], count, rows), draw_table(title, rows))
    text = f"{words.sentence('coverage/values', **values)}\n\n{words.lines(lines)}"
    if choices := words.schema.property(type, name).choices:
        text += f"\n\n{words.sentence('concept/choices', values=words.listed(choices))}"
    return Written(text, (), rows, stats, drawn)
