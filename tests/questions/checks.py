"""What an answer must hold to be right: each check says what it found wrong, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from phronesis_contracts.answers import Analysis

Check = Callable[[Analysis], str]
"""The empty text where the answer is right."""
CONFIDENT = 0.5
"""Above it an answer passes for one."""


_BESIDE = ("known", "not published", "share")
"""Columns beside the group and its figure. The order of columns is lost where an answer is stored."""


def rows(answer: Analysis) -> list[dict[str, Any]]:
    """The rows that an answer rests on."""
    return list(answer.data.query_results)


def number(n: int) -> Check:
    """The answer states the number, and no other in bold."""

    def check(answer: Analysis) -> str:
        bold = [part for at, part in enumerate(answer.answer.split("**")) if at % 2]
        said = [part.replace(",", "") for part in bold if part.replace(",", "").isdigit()]
        return "" if said[:1] == [str(n)] or (n == 0 and "no" in bold) else f"{n} is not what it says"

    return check


def groups(expected: dict[Any, float]) -> Check:
    """The rows are the groups with their figures, all of them and no others; the answer names each."""

    def check(answer: Analysis) -> str:
        found = {}
        for row in rows(answer):
            label = "year" if "year" in row else next((key for key, value in row.items() if isinstance(value, str)), None)
            figures = [value for key, value in row.items() if key not in (label, *_BESIDE) and isinstance(value, int | float)]
            if label is None or not figures:
                return f"no group and figure in {row}"
            found[row[label]] = figures[0]
        wanted = {key: value for key, value in expected.items() if value is not None}
        if set(found) != set(wanted):
            return f"groups {set(found) ^ set(wanted)}"
        wrong = {key for key, value in wanted.items() if not _near(found[key], value)}
        unsaid = {key for key in wanted if str(key) not in answer.answer}
        return f"wrong {wrong} unsaid {unsaid}" if wrong or unsaid else ""

    return check


def names(expected: Iterable[str]) -> Check:
    """The rows are these names, all of them and no others."""
    wanted = set(expected)

    def check(answer: Analysis) -> str:
        found = {row["name"] for row in rows(answer) if "name" in row}
        return "" if found == wanted else f"too many {found - wanted} missing {wanted - found}"

    return check


def figure(value: float, known: int | None = None) -> Check:
    """One row with the figure, stated in the answer in £ million; with how many published figures it is made of."""

    def check(answer: Analysis) -> str:
        figures = [v for row in rows(answer) for v in row.values() if isinstance(v, float)]
        if len(figures) != 1 or not _near(figures[0], value):
            return f"{figures} is not {value}"
        if known is not None and f"from {known:,} published figures" not in answer.answer:
            return f"not said to be of {known} published figures"
        said = {f"{'-' if value < 0 else ''}£{abs(value):,.{digits}f} million" for digits in (0, 1, 2)}
        return "" if any(text in answer.answer for text in said) else "unsaid"

    return check


def says(*texts: str) -> Check:
    """The answer or an insight has all of these texts."""

    def check(answer: Analysis) -> str:
        said = "\n".join((answer.answer, *answer.analysis))
        absent = [text for text in texts if text not in said]
        return f"lacks {absent}" if absent else ""

    return check


def table_of(key: str, *columns: str, expected: dict[Any, tuple[Any, ...]]) -> Check:
    """The rows by one column have these values in the others."""

    def check(answer: Analysis) -> str:
        found = {row[key]: tuple(row.get(column) for column in columns) for row in rows(answer)}
        return "" if found == expected else f"{found} is not {expected}"

    return check


def gaps(expected: set[tuple[int, str]]) -> Check:
    """The rows are exactly these gaps, and a table comes first."""

    def check(answer: Analysis) -> str:
        found = {(row["year"], row["what is missing"]) for row in rows(answer)}
        if found != expected:
            return f"too many {found - expected} missing {expected - found}"
        first = answer.visualizations[0].type.value if answer.visualizations else "nothing"
        return "" if not expected or first == "table" else f"{first} comes first"

    return check


def every(*checks: Check) -> Check:
    """All of them."""
    return lambda answer: "; ".join(wrong for check in checks if (wrong := check(answer)))


def _near(one: Any, other: float) -> bool:
    return isinstance(one, int | float) and abs(one - other) <= 1e-6 * max(1.0, abs(other))
