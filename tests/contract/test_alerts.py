"""Every alert that may wake somebody says what to do, in its rule and in the page for operators."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
RULES = [
    rule for group in yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"] for rule in group["rules"]
]


def test_each_alert_stands_in_the_page_for_operators_and_no_other_one() -> None:
    page = (ROOT / "docs/how-to/operations.md").read_text().partition("## Alerts")[2].partition("\n## ")[0]
    rows = {tuple(cell.strip(" `") for cell in line.split("|")[1:3]) for line in page.splitlines() if line.startswith("| `")}
    assert rows == {(rule["alert"], rule["labels"]["severity"]) for rule in RULES}


def test_each_alert_says_what_it_saw_and_what_to_do() -> None:
    assert [rule["alert"] for rule in RULES if not {"summary", "do"} <= rule["annotations"].keys()] == []
