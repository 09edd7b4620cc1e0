"""Findings said: the direct answer first, then what it consists of, with units, what is not known, and how a model's plan
understood the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..agents.presentation import draw_column, draw_table
from .figures_said import end_of, say_comparison, say_figures
from .finding import Finding, Note, Row
from .plan import (
    Aggregate,
    Change,
    Compare,
    Compose,
    Coverage,
    Describe,
    Gaps,
    Plan,
    Rank,
    Relate,
    Schema,
    Select,
    Selection,
    Talk,
    Understood,
    Unknown,
)
from .things_said import say_coverage, say_described, say_gaps, say_links
from .wording import Wording, Written, capitalized, plain


def write(finding: Finding | None, plan: Plan, schema: Schema, language: str, text: str = "") -> Written:
    """The answer to a plan.

    Args:
        finding: what executing it gave; `None` for a plan that needs no data.
        plan: the plan.
        schema: the ontology, which has the words for things.
        language: as ISO 639 has it; English where there is no content for it.
        text: for talk, what its sentence tells: the time, or what was asked before.

    Raises:
        TypeError: no sentence is for such a plan.
    """
    words = Wording(schema, language)
    if finding is None:
        return _without_data(plan, words, text)
    if finding.outcome == "too_many":
        return Written(words.sentence("too_many", finding.total or 1))
    if finding.outcome in ("unordered", "incomparable"):
        return Written(words.sentence(finding.outcome))
    written = _said(finding, plan, words)
    notes = [said for note in finding.notes if (said := say_note(note, words))]
    charts_with_data = tuple(chart for chart in written.charts if chart.data)
    return Written(written.text, (*written.insights, *notes), written.rows, written.stats, charts_with_data)


def _said(finding: Finding, plan: Plan, words: Wording) -> Written:
    match plan:
        case Select():
            return _select(finding, plan, words) if finding.rows else _empty(finding, plan.of, words, plan.exists)
        case Aggregate():
            return say_figures(finding, plan, words) if finding.total else _empty(finding, plan.of, words)
        case Rank():
            return _rank(finding, plan, words) if finding.rows else _empty(finding, plan.of, words)
        case Compare():
            every = plan.sides[0].of.model_copy(update={"years": plan.years})
            return say_comparison(finding, plan, words) if finding.figures else _empty(finding, every, words)
        case Change():
            return _change(finding, plan, words)
        case Relate():
            return say_links(finding, plan, words)
        case Gaps():
            of = plan.of
            nothing = of is not None and not plan.entities and not finding.total
            return _empty(finding, of, words) if nothing and of is not None else say_gaps(finding, plan, words)
        case Describe():
            return say_described(finding, plan, words)
        case Coverage():
            return say_coverage(finding, plan, words)
    raise TypeError(f"there is no sentence for a finding of kind {plan.kind}")


def _without_data(plan: Plan, words: Wording, text: str) -> Written:
    match plan:
        case Talk():
            types = words.listed([words.type(one.name) for one in words.schema.view.types[:_TYPES_NAMED]])
            return Written(words.sentence(f"talk/{plan.about}", types=types, text=text or plan.text))
        case Compose():
            return Written(words.sentence("compose", task=words.raw("tasks")[plan.task]))
        case Unknown():
            return _unknown(plan, words)
    raise TypeError(f"a plan of kind {plan.kind} is not said without a finding")


_TYPES_NAMED = 6


def _unknown(plan: Unknown, words: Wording) -> Written:
    detail = plan.detail
    known = {one.name for one in words.schema.view.types}
    type = words.type(detail["type"]) if detail.get("type") in known else ""
    of = words.phrase("unknown/of", type=type) if type else ""
    covered = words.phrase("unknown/covered", covered=detail["covered"]) if detail.get("covered") else ""
    asked = plan.words or detail.get("property", "")
    chooses = plan.reason == "words" and bool(plan.choices)
    unnamed = plan.reason == "property" and not asked
    no_data = plan.reason == "empty" and not asked and type
    key = "words_choices" if chooses else "property_unnamed" if unnamed else "empty_type" if no_data else plan.reason
    years = detail.get("years", asked)
    said = words.sentence(f"unknown/{key}", words=asked, of=of, covered=covered, years=years, type=type)
    rows = tuple({words.property(None, "name"): one.name} for one in plan.choices)
    choices = words.lines(f"{one.name} ({words.type(one.type, one.level, 1)})" for one in plan.choices)
    return Written(f"{said}\n\n{choices}" if choices else said, rows=rows, charts=(draw_table(said, rows),) if rows else ())


def say_confidence(value: float, schema: Schema, language: str) -> str:
    """How well an answer is supported, in a sentence."""
    steps = (("high", 0.8), ("medium", 0.5), ("low", 0.0))
    return Wording(schema, language).sentence(f"confidence/{next(name for name, least in steps if value >= least)}")


def say_note(note: Note, words: Wording) -> str:
    """A note as a sentence."""
    values = dict(note.values)
    n = values.pop("n", None)
    type, name = values.get("type"), values.get("property")
    if name is not None:
        values["property"] = words.property(type, name)
    if type is not None:
        values["type"] = capitalized(words.type(type))
    if note.key == "undecided":
        values["in_years"] = words.in_years(values.pop("years"))
    for key in ("years", "covered"):
        if key in values:
            values[key] = words.years(values[key]) if values[key] else words.phrase("no_group")
    for key in ("dropped", "begun"):
        if key in values:
            values[key] = words.phrase(f"notes/scale_{key}", values=words.listed(values[key])) if values[key] else ""
    if "names" in values:
        values["names"] = words.listed(values["names"])
    if "chain" in values:
        values["chain"] = words.schema.chain_name(values["chain"], words.language)
    return words.sentence(f"notes/{note.key}", n, **values)


def _empty(finding: Finding, of: Selection, words: Wording, exists: bool = False) -> Written:
    """Nothing fits: in which other years something does, if the data covers the years that were asked about."""
    said = words.sentence("empty/none", in_years=words.in_years(of.years), set=words.set(of))
    uncovered = any(note.key == "no_data" for note in finding.notes)
    if finding.years:
        said += " " + words.sentence(
            "empty/elsewhere", in_years=words.in_years(finding.years), years=words.years(finding.years)
        )
    elif not uncovered and not finding.total:
        said += " " + words.sentence("empty/nowhere")
    answer = f"{words.phrase('denied')} {said}" if exists else said
    return Written(answer, stats={"count": 0})


def member_rows(finding: Finding, type: str, years: Sequence[int], words: Wording) -> tuple[Row, ...]:
    """Members with headings; the year where there are several."""
    rows = []
    for row in finding.rows:
        shown: Row = {words.property(None, "name"): row["name"]}
        if len(years) > 1:
            shown[words.property(None, "year")] = row["year"]
        shown |= {words.heading(type, name): plain(row.get(name), words) for name in finding.show}
        rows.append(shown)
    return tuple(rows)


def _details(row: Row, finding: Finding, type: str, years: Sequence[int], words: Wording) -> str:
    """What stands behind a name in a list."""
    shown = [str(row["year"])] if len(years) > 1 else []
    shown += [f"{words.property(type, name)} {words.value(type, name, row.get(name))}" for name in finding.show]
    return f" ({', '.join(shown)})" if shown else ""


def _select(finding: Finding, plan: Select, words: Wording) -> Written:
    of = plan.of
    n = len(finding.entities)  # a thing of several years is one thing
    values = {"in_years": words.in_years(of.years), "set": words.set(of, n)}
    details = [_details(row, finding, of.type, of.years, words) for row in finding.rows]
    lines = [f"{row['name']}{more}" for row, more in zip(finding.rows, details, strict=True)]
    if len(of.years) > 1 and not finding.show:
        lines = [f"{one.name} ({words.years(one.years)})" for one in finding.entities]
    text = words.sentence("select/head", n, name=finding.rows[0]["name"], details=details[0], **values)
    if len(lines) > 1:
        text += _together(finding, plan, words) + "\n\n" + words.lines(lines)
    rows = member_rows(finding, of.type, of.years, words)
    incomplete = (
        (words.sentence("select/incomplete", finding.unknown, total=words.number(finding.total)),) if finding.unknown else ()
    )
    title = capitalized(words.phrase("select/title", set=words.set(of), years=words.years(of.years)))
    answer = f"{words.phrase('affirmed')} {text}" if plan.exists else text
    return Written(answer, incomplete, rows, {"count": n}, (draw_table(title, rows),))


def _together(finding: Finding, plan: Select, words: Wording) -> str:
    """What the members of a list cost together, where one sum of money is shown of each, of one year."""
    name = finding.show[0] if len(finding.show) == 1 and len(plan.of.years) == 1 else None
    if name is None or not words.is_money(plan.of.type, name):
        return ""
    known = [value for row in finding.rows if isinstance(value := row.get(name), int | float)]
    total = words.amount(round(sum(known), 6), words.unit(plan.of.type, name))
    property = words.property(plan.of.type, name)
    return " " + words.sentence("select/together", len(known), value=total, property=property) if len(known) > 1 else ""


def _rank(finding: Finding, plan: Rank, words: Wording) -> Written:
    of = plan.of
    if plan.by is not None:
        name, end = words.property(of.type, plan.by), end_of(of.type, plan.by, plan.descending, words)
        heading = words.heading(of.type, plan.by)
    else:
        assert plan.via is not None
        to = plan.to or words.schema.leads_to(of.type, plan.via)[0]
        verb = words.verb(plan.via, of.type in words.schema.relationship(plan.via).sources)
        heading = name = words.phrase("rank/links", type=words.type(to), verb=verb)
        end = words.raw("ends")["number"]["most" if plan.descending else "least"]

    def value(row: Row) -> str:
        return words.value(of.type, plan.by, row["value"]) if plan.by else words.number(row["value"])

    total = finding.total if plan.by is None else finding.known
    values = {"in_years": words.in_years(of.years), "total": words.number(total), "set": words.set(of, total)}
    values |= {"end": end, "property": name}
    rows = tuple(
        {**shown, heading: row["value"]}
        for shown, row in zip(member_rows(finding, of.type, of.years, words), finding.rows, strict=True)
    )
    first = finding.rows[0]
    details = [_details(row, finding, of.type, of.years, words) for row in finding.rows]
    verdict = ""
    if plan.expect is not None:
        alone = len(rows) == 1 or len({row["value"] for row in finding.rows[:2]}) > 1
        leads = first["name"] == plan.expect.name and alone
        verdict = words.phrase("affirmed" if leads else "denied") + " "
    if len(rows) == 1:
        key = "rank/one" if plan.position == 1 else "rank/at"
        text = words.sentence(key, name=first["name"], value=value(first), details=details[0], position=plan.position, **values)
    elif plan.limit == 1 and plan.position == 1:
        text = words.sentence(
            "rank/tied", names=words.listed(row["name"] for row in finding.rows), value=value(first), **values
        )
    else:
        listed = (f"{row['name']}{more}: **{value(row)}**" for row, more in zip(finding.rows, details, strict=True))
        key = "rank/many" if plan.position == 1 else "rank/many_at"
        text = f"{words.sentence(key, position=plan.position, **values)}\n\n{words.lines(listed)}"
        if plan.together is not None and plan.by is not None:
            known = [float(row["value"]) for row in finding.rows[: plan.limit]]
            figure = sum(known) / (len(known) if plan.together == "mean" else 1)
            figure_said = words.amount(round(figure, 6), words.unit(of.type, plan.by))
            text = f"{words.sentence(f'rank/{plan.together}', n=len(known), value=figure_said, property=name)} {text}"
    unpublished = (
        (words.sentence("rank/unpublished", finding.unknown, total=words.number(finding.total)),) if finding.unknown else ()
    )
    title = capitalized(words.phrase("rank/title", set=words.set(of), property=name, years=words.years(of.years)))
    drawn = (draw_column(title, words.property(None, "name"), heading, rows),) if len(rows) > 1 else ()
    return Written(verdict + text, unpublished, rows, {"of": finding.total}, (*drawn, draw_table(title, rows)))


def _change(finding: Finding, plan: Change, words: Wording) -> Written:
    of = plan.of
    if any(note.key == "no_data" for note in finding.notes):
        return _empty(finding, of.model_copy(update={"years": (plan.since, plan.until)}), words)
    n = int(finding.value or 0)
    came = plan.what in ("joined", "left")
    values = {"since": plan.since, "until": plan.until, "set": words.set(of, n if came else finding.total)}
    values["total"] = words.number(finding.total)
    if plan.property is not None:
        values["property"] = words.property(of.type, plan.property)
    if plan.property is not None and plan.after is not None:
        values["after"] = words.value(of.type, plan.property, plan.after)
    key = "most" if plan.limit is not None and finding.rows else "became" if "after" in values else plan.what
    text = words.sentence(f"change/{key}", n, **values)
    rows: tuple[Row, ...] = tuple({words.property(None, "name"): row["name"]} for row in finding.rows)
    told = [str(row["name"]) for row in finding.rows]
    if not came and plan.property is not None:
        name = plan.property
        rows = tuple(
            {**shown, str(plan.since): row["before"], str(plan.until): row["after"]}
            for shown, row in zip(rows, finding.rows, strict=True)
        )
        told = [_moved(row, of.type, name, words) for row in finding.rows]
    if told and not plan.count:
        text += "\n\n" + words.lines(told)
    counts = [one.value for one in finding.figures]
    insights = (
        (words.sentence("change/counts", since=plan.since, until=plan.until, before=counts[0], after=counts[1]),)
        if counts
        else ()
    )
    title = capitalized(words.phrase("change/title", set=words.set(of), since=plan.since, until=plan.until))
    return Written(text, insights, rows, {"count": n, "of": finding.total}, (draw_table(title, rows),))


def _moved(row: Row, type: str, name: str, words: Wording) -> str:
    before, after = words.value(type, name, row["before"]), words.value(type, name, row["after"])
    numbers = isinstance(row["before"], int | float) and isinstance(row["after"], int | float)
    step = f" ({words.amount(row['step'], words.unit(type, name), signed=True)})" if numbers else ""
    return words.phrase("change/line", name=row["name"], before=before, after=after, step=step)


@dataclass(frozen=True)
class Taken:
    """What is said of how a message was understood."""

    glosses: str
    """What unknown words were taken for, which an answer begins with; empty where there were none."""
    plan: str
    """The whole of the plan, at its end."""

    def around(self, text: str) -> str:
        """An answer with both, each once."""
        before = f"{self.glosses}\n\n" if self.glosses and self.glosses not in text else ""
        after = f"\n\n{self.plan}" if self.plan not in text else ""
        return f"{before}{text}{after}"


_NAMES = 3
"""Things that are named."""


def say_taken(understood: Understood, words: Wording) -> Taken:
    """What has to be said of a plan that a model made."""
    each = words.listed(
        words.phrase("taken/gloss", said=said, meaning=_meaning(sort, name, words)) for said, sort, name in understood.glosses
    )
    return Taken(
        words.phrase("taken/glosses", glosses=each) if each else "",
        words.phrase("taken/said", what=_what(understood.plan, words)),
    )


def _meaning(sort: str, name: str, words: Wording) -> str:
    match sort:
        case "op":
            return str(words.raw("taken/ops")[name])
        case "type":
            return words.type(name)
        case "relation":
            return words.verb(name, True)
    owner = next((one.name for one in words.schema.view.types if any(each.name == name for each in one.properties)), None)
    return words.property(owner, name)


def _what(plan: Plan, words: Wording) -> str:
    match plan:
        case Select():
            return words.phrase("taken/select", set=words.set(plan.of), years=words.years(plan.of.years))
        case Aggregate():
            return _figure(plan, words)
        case Compare():
            how = words.raw("taken/hows")[plan.how]
            return words.phrase("taken/compare", how=how, sides=words.listed(_figure(one, words) for one in plan.sides))
        case Rank():
            end = words.raw("taken/ends")["most" if plan.descending else "least"]
            by = words.property(plan.of.type, plan.by) if plan.by else words.phrase("taken/links")
            return words.phrase("taken/rank", set=words.set(plan.of), property=by, end=end, years=words.years(plan.of.years))
        case Change():
            property = words.property(plan.of.type, plan.property) if plan.property else ""
            return words.phrase(
                "taken/change",
                set=words.set(plan.of),
                what=words.raw("taken/whats")[plan.what],
                since=plan.since,
                until=plan.until,
                property=words.phrase("taken/of_property", property=property) if property else "",
            )
        case Relate():
            return words.phrase("taken/relate", name=plan.source.name, years=words.years((plan.year,)))
        case Gaps():
            of = words.set(plan.of) if plan.of is not None else _names([one.name for one in plan.entities], words)
            return words.phrase("taken/gaps", set=of, years=words.years(plan.years))
        case Describe():
            type = plan.entities[0].type
            asked = list(plan.properties) or ([plan.expect.property] if plan.expect is not None else [])
            properties = words.listed(words.property(type, one) for one in asked) or words.phrase("taken/everything")
            names = _names([one.name for one in plan.entities], words)
            return words.phrase("taken/describe", properties=properties, names=names, years=words.years(plan.years))
    raise TypeError(f"a plan of kind {plan.kind} is not about data")


def _figure(plan: Aggregate, words: Wording) -> str:
    by = words.listed(words.group(one, plan.of.type) for one in plan.group_by)
    groups = words.phrase("taken/groups", groups=by) if by else ""
    set, years = words.set(plan.of), words.years(plan.of.years)
    if plan.measure == "count" or plan.property is None:
        return words.phrase("taken/count", set=set, groups=groups, years=years)
    property = words.property(plan.of.type, plan.property)
    return words.phrase("taken/measured", measure=words.measure(plan), property=property, set=set, groups=groups, years=years)


def _names(names: Sequence[str], words: Wording) -> str:
    return words.some(names, _NAMES)
