"""Background tasks of a running stack: handed in and looked at, and the figures of their reports beside the published ones."""

from __future__ import annotations

import csv
import io
from collections import Counter
from decimal import Decimal
from importlib.resources import files
from typing import Any
from uuid import uuid4

import asyncpg

from phronesis_local import postgres
from tests.support.bus import eventually
from tests.support.people import ENDS, Person
from tests.support.stack import RunningStack

TASKS, STRATEGIES = "/api/v1/tasks", "/api/v1/strategies"
GOAL = "Portfolio risk report for the Ministry of Defence, 2021 to 2023"


def published() -> dict[int, dict[str, Any]]:
    """The figures of the Ministry of Defence, from the published table alone."""
    file = files("phronesis_samples.portfolio").joinpath("portfolio_2020_2023.csv")
    text = io.StringIO(file.read_bytes().decode("utf-8"), newline="")
    rows = [row for row in csv.DictReader(text) if "MOD" in {one.strip() for one in row["department"].split("&")}]
    found = {}
    for year in (2021, 2022, 2023):
        mine = [row for row in rows if row["year"] == str(year)]
        costs = [Decimal(row["whole_life_cost_gbp_m"]) for row in mine if row["whole_life_cost_gbp_m"].strip()]
        forecasts = [Decimal(row["year_forecast_gbp_m"]) for row in mine if row["year_forecast_gbp_m"].strip()]
        found[year] = {
            "projects": len(mine),
            "ratings": dict(Counter(row["rating"].strip() or "not published" for row in mine)),
            "cost": sum(costs, Decimal()),
            "published": len(costs),
            "forecast": sum(forecasts, Decimal()),
        }
    return found


def told(report: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The figures of a report, from the rows of its tables."""
    tables = {one["title"]: one for one in report["blocks"] if one["kind"] == "table"}
    ratings, money = (_by_year(tables[title]) for title in ("Projects by rating", "Totals by year"))
    found = {}
    for year, row in ratings.items():
        counts = {name: n for name, n in row.items() if name != "Year" and n}
        sums = money[year]
        found[year] = {
            "projects": sum(counts.values()),
            "ratings": counts,
            "cost": Decimal(str(sums["whole-life cost, together (£ million)"])),
            "published": sums["whole-life cost known of"],
            "forecast": Decimal(str(sums["forecast, together (£ million)"])),
        }
    return found


def _by_year(table: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}


async def task(person: Person, goal: str = GOAL, key: str | None = None, **budget: Any) -> str:
    """The id of a task that is accepted."""
    body = {"goal": goal, "budget": budget}
    answer = await person.http.post(TASKS, json=body, headers={"Idempotency-Key": key or uuid4().hex})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["turn_id"])


async def looked(person: Person, id: str) -> dict[str, Any]:
    """How far a task is."""
    answer = await person.http.get(f"{TASKS}/{id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def judged(person: Person, id: str, accepted: bool = True, comment: str = "") -> dict[str, Any]:
    """A task once its user has said whether its result is what was asked for."""
    answer = await person.http.post(f"{TASKS}/{id}/outcome", json={"accepted": accepted, "comment": comment})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def ended(person: Person, id: str) -> dict[str, Any]:
    """A task that has ended."""
    found: dict[str, Any] = {}

    async def over() -> bool:
        found.update(await looked(person, id))
        return found["status"] in ENDS

    await eventually(over, 180)
    return found


async def documents(stack: RunningStack, id: str) -> list[str]:
    """The ids of the documents that a task has saved."""
    connection = await asyncpg.connect(postgres.dsn(stack.data.postgres))
    try:
        return [str(row["id"]) for row in await connection.fetch(_DOCUMENTS, f"task/{id}")]
    finally:
        await connection.close()


_DOCUMENTS = "SELECT id FROM memory.items WHERE external_id = $1"
