"""Figures over sets and groups, and figures side by side, said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from phronesis_contracts.answers import Visualization

from ..agents.presentation import MOST_PARTS, draw_column, draw_line, draw_pie, draw_table
from .finding import Figure, Finding, Row
from .plan import Aggregate, Compare
from .wording import Wording, Written, capitalized, plain


def say_figures(finding: Finding, plan: Aggregate, words: Wording) -> Written:
    """A figure, or one for each group."""
    if not finding.dimensions:
        return _figure_said(finding, plan, words)
    of = plan.of
    names = [words.group(by, of.type) for by in finding.dimensions]
    value_name = words.type(of.type, of.level) if plan.property is None else _measured_name(plan, words)
    keys = ("group", "group2")[: len(names)]
    if value_name in names:
        value_name = str(words.raw("measures")["count"])
    rows = tuple(
        {
            **{
                name: words.group_value(by, of.type, row[key]) if by.property != "year" else row[key]
                for name, by, key in zip(names, finding.dimensions, keys, strict=True)
            },
            value_name: plain(row["value"], words),
            **({words.phrase("not_published"): row["unknown"]} if plan.property and row["unknown"] else {}),
        }
        for row in finding.rows
    )
    head = _group_head(finding, plan, names, words)
    told = words.lines(_group_line(row, shown, names, plan, words) for row, shown in zip(finding.rows, rows, strict=True))
    title = _title_of_groups(plan, names, words)
    drawn = _charts_of_groups(finding, rows, names, value_name, title)
    stats = {"total": finding.total, "groups": len(rows), "not_published": finding.unknown}
    direct = plan.limit is not None and plan.order != "group" and len({row["value"] for row in finding.rows}) == 1
    insights = _group_insights(finding, plan, names, words)
    trend = insights if finding.dimensions[0].property == "year" else ()
    text = head if direct else "\n\n".join((head, told, *trend))
    return Written(text, insights, rows, stats, drawn)


def _figure_said(finding: Finding, plan: Aggregate, words: Wording) -> Written:
    of, [figure] = plan.of, finding.figures
    values = {"in_years": words.in_years(of.years), "set": words.set(of, finding.total)}
    if plan.measure == "count":
        name = words.type(of.type, of.level)
        text = words.sentence("aggregate/count", finding.total, **values)
        return Written(text, rows=({name: finding.total},), stats={"count": finding.total})
    assert plan.property is not None
    named = {"measure": words.measure(plan), "property": words.property(of.type, plan.property), **values}
    named["set"] = words.set(of)
    stats = {"value": figure.value, "known": figure.known, "not_published": figure.unknown}
    if figure.value is None:
        return Written(words.sentence("aggregate/unpublished", **named), stats=stats)
    key = "basis_unknown" if figure.unknown else "basis"
    basis = words.phrase(f"aggregate/{key}", figure.known, unknown=words.number(figure.unknown))
    said = words.sentence("aggregate/figure", value=_figure_value(figure, plan, words), basis=basis, **named)
    return Written(said, rows=({_measured_name(plan, words): figure.value},), stats=stats)


def _measured_name(plan: Aggregate, words: Wording) -> str:
    return f"{words.measure(plan)} {words.heading(plan.of.type, plan.property or 'id')}"


def _figure_value(figure: Figure, plan: Aggregate, words: Wording) -> str:
    return _amount_of(plan, figure.value, words)


def _amount_of(plan: Aggregate, value: object, words: Wording) -> str:
    if plan.property is None and isinstance(value, int | float):
        return words.number(value)
    return words.value(plan.of.type, plan.property or "id", value)


def _group_head(finding: Finding, plan: Aggregate, names: Sequence[str], words: Wording) -> str:
    of = plan.of
    values = {"in_years": words.in_years(of.years), "set": words.set(of), "groups": words.listed(names)}
    if plan.property is not None:
        values |= {"measure": words.measure(plan), "property": words.property(of.type, plan.property)}
    head = words.sentence("aggregate/measured" if plan.property else "aggregate/groups", **values)
    if plan.count_groups and finding.value is not None:
        having = ""
        if plan.having is not None:
            what = words.set(of) if plan.property is None else f"{values['measure']} {values['property']}"
            compared = words.raw("comparisons")[plan.having.op]
            having = words.phrase("aggregate/having", what=what, op=compared, value=words.number(plan.having.value))
        noun = _group_noun(plan, int(finding.value), words)
        return f"{words.sentence('aggregate/groups_counted', int(finding.value), noun=noun, having=having)} {head}"
    same = {row["value"] for row in finding.rows}
    if plan.limit is None or plan.order == "group" or len(same) != 1:
        return head
    first = [words.group_value(finding.dimensions[-1], of.type, row[_last_key(finding)]) for row in finding.rows]
    most = plan.order == "-value"
    if plan.property is None:
        values["end"] = words.raw("aggregate")["most" if most else "least"]
    else:
        values["end"] = end_of(of.type, plan.property, most, words)
    key = "aggregate/first_count" if plan.property is None else "aggregate/first"
    return words.sentence(key, len(first), group=words.listed(first), value=_amount_of(plan, same.pop(), words), **values)


def _last_key(finding: Finding) -> str:
    return ("group", "group2")[len(finding.dimensions) - 1]


def _group_noun(plan: Aggregate, n: int, words: Wording) -> str:
    by = plan.group_by[0] if plan.group_by else None
    if by is not None and by.via and by.to and by.property in ("id", "name"):
        return words.type(by.to, n=n)
    return words.property(by.to if by and by.via else plan.of.type, by.property) if by else words.property(None, "year")


def end_of(type: str, name: str, most: bool, words: Wording) -> str:
    """What the end of an order is called: highest, latest, last in the order of the scale."""
    kind = words.schema.property(type, name).kind
    ends = words.raw("ends")
    return str(ends[kind if kind in ends else "string"]["most" if most else "least"])


def _group_line(row: Row, shown: Row, names: Sequence[str], plan: Aggregate, words: Wording) -> str:
    group = ", ".join(str(shown[name]) for name in names)
    value = _amount_of(plan, row["value"], words)
    if plan.property is None or not row["unknown"]:
        return words.phrase("aggregate/line", group=group, value=value)
    known, unknown = words.number(row["known"]), words.number(row["unknown"])
    return words.phrase("aggregate/line_known", group=group, value=value, known=known, unknown=unknown)


def _title_of_groups(plan: Aggregate, names: Sequence[str], words: Wording) -> str:
    values = {"set": words.set(plan.of), "groups": words.listed(names), "years": words.years(plan.of.years)}
    if plan.property is None:
        return capitalized(words.phrase("aggregate/title", **values))
    named = {"measure": words.measure(plan), "property": words.property(plan.of.type, plan.property)}
    return capitalized(words.phrase("aggregate/title_measured", **named, **values))


def _charts_of_groups(
    finding: Finding, rows: Sequence[Row], names: Sequence[str], value: str, title: str
) -> tuple[Visualization, ...]:
    """Years as a line, groups as columns, and as a pie where they are parts of a whole."""
    if len(names) > 1:
        return (draw_table(title, rows),)
    [name] = names
    if finding.dimensions[0].property == "year":
        return (draw_line(title, name, value, rows), draw_table(title, rows))
    parts = [row["value"] for row in finding.rows if isinstance(row["value"], int | float)]
    whole = all(one > 0 for one in parts) and not any(note.key == "in_two_groups" for note in finding.notes)
    summed = whole and sum(parts) == finding.value and 1 < len(parts) <= MOST_PARTS
    pies = (draw_pie(title, name, value, rows),) if summed else ()
    return (draw_column(title, name, value, rows), *pies, draw_table(title, rows))


def _group_insights(finding: Finding, plan: Aggregate, names: Sequence[str], words: Wording) -> tuple[str, ...]:
    figures = [row for row in finding.rows if isinstance(row["value"], int | float)]
    if len(names) != 1 or len(figures) < 2 or plan.limit is not None:
        return ()
    if finding.dimensions[0].property == "year":
        first, last = figures[0], figures[-1]
        ends = ((one["group"], one["value"]) for one in (first, last))
        return (words.trend(plan.of.type, plan.property, *ends),)
    if plan.property is not None or not finding.total:
        return ()
    top = max((row for row in figures if row["group"] is not None), key=lambda row: row["value"], default=None)
    if top is None:
        return ()
    group = words.group_value(finding.dimensions[0], plan.of.type, top["group"])
    share = words.percent(100 * top["value"] / finding.total)
    total = words.number(finding.total)
    return (words.sentence("aggregate/top", group=group, value=words.number(top["value"]), total=total, percent=share),)


def say_comparison(finding: Finding, plan: Compare, words: Wording) -> Written:
    """Figures side by side, and what they make together."""
    first, second, *_ = plan.sides
    one_time = len({side.of.years for side in plan.sides}) == 1
    when = f"{words.in_years(first.of.years)}, " if one_time else ""
    sides = [_side(side, words, dated=not one_time) for side in plan.sides]
    said = [_amount_of(side, one.value, words) for side, one in zip(plan.sides, finding.figures, strict=True)]
    title, heading = words.phrase("compare/title"), words.phrase("compare/value")
    rows = tuple({title: name, heading: plain(one.value, words)} for name, one in zip(sides, finding.figures, strict=True))
    values = {"when": when, "first": sides[0], "second": sides[1], "a": said[0], "b": said[1]}
    values |= {"set": _side(first, words, dated=False), "part": _part(first, second, words)}
    values |= {"first_years": words.in_years(first.of.years), "second_years": words.in_years(second.of.years)}
    unit = words.unit(first.of.type, first.property)
    drawn: tuple[Visualization, ...] = (draw_column(title, title, heading, rows),)
    if finding.value is None:
        lines = words.lines(words.phrase("compare/line", side=name, value=one) for name, one in zip(sides, said, strict=True))
        nothing = plan.how in ("share", "ratio") and finding.figures[1].value == 0
        text = f"{words.sentence('compare/none' if nothing else 'compare/head', **values)}\n\n{lines}"
    elif plan.how == "share":
        text = words.sentence("compare/share", value=words.percent(finding.value), **values)
        drawn = _share_pie(finding, sides, title, words)
    elif plan.how == "ratio":
        text = words.sentence("compare/ratio", value=words.number(float(f"{finding.value:.3g}")), **values)
    else:
        percent = words.phrase("compare/percent", n=words.percent(finding.percent, signed=True)) if finding.percent else ""
        step = words.amount(round(finding.value, 6), unit, signed=True)
        key = (
            "change"
            if plan.how == "change" and not one_time and values["set"] == _side(second, words, dated=False)
            else "difference"
        )
        text = words.sentence(f"compare/{key}", value=step, percent=percent, **values)
    stats = {"figures": [one.value for one in finding.figures], "value": finding.value, "percent": finding.percent}
    text = _led(text, finding, plan, values, words)
    return Written(text, (), rows, stats, (*drawn, draw_table(title, rows)))


def _led(text: str, finding: Finding, plan: Compare, values: Mapping[str, str], words: Wording) -> str:
    """A comparison behind its yes or no, or behind the side that was asked for."""
    one, other = (figure.value for figure in finding.figures[:2])
    if plan.expect is None and plan.first is None:
        return text
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return f"{words.phrase('undecided_answer')} {text}"
    if plan.expect is not None:
        holds = {"more": one > other, "less": one < other, "all": one == other > 0}[plan.expect]
        return f"{words.phrase('affirmed' if holds else 'denied')} {text}"
    if one == other:
        return words.sentence("compare/equal", **values)
    turned = {"first": values["second"], "second": values["first"], "a": values["b"], "b": values["a"]}
    if (one > other) != (plan.first == "most"):
        values = {**values, **turned}
    return words.sentence("compare/more" if plan.first == "most" else "compare/less", **values)


def _side(side: Aggregate, words: Wording, *, dated: bool) -> str:
    said = words.set(side.of)
    if side.property is not None:
        named = {"measure": words.measure(side), "property": words.property(side.of.type, side.property)}
        said = words.phrase("compare/measured", set=said, **named)
    return words.phrase("compare/dated", side=said, in_years=words.in_years(side.of.years)) if dated else said


def _part(part: Aggregate, whole: Aggregate, words: Wording) -> str:
    """What tells a part from its whole: the conditions that it has beside those of the whole."""
    more = [one for one in part.of.filters if one not in whole.of.filters]
    if part.of.type != whole.of.type or not more or part.property is not None:
        return _side(part, words, dated=False)
    return "; ".join(words.condition(one, part.of.type) for one in more)


def _share_pie(finding: Finding, sides: Sequence[str], title: str, words: Wording) -> tuple[Visualization, ...]:
    part, whole = (one.value for one in finding.figures[:2])
    if not isinstance(part, int | float) or not isinstance(whole, int | float) or not 0 <= part <= whole:
        return ()
    label, value = words.phrase("compare/title"), words.phrase("compare/value")
    rows = [{label: sides[0], value: part}, {label: words.phrase("compare/rest"), value: round(whole - part, 6)}]
    return (draw_pie(title, label, value, rows),)
