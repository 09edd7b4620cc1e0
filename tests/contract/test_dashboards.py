"""Dashboards and alerts ask for metrics that the code has, by labels that they have."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from functools import cache

import yaml

from phronesis_bus.metrics import Kind, Metric
from scripts.deployment import ALERTS, DASHBOARDS, expressions
from scripts.tree import ROOT
from tests.support.cases import for_each

ASKED = sorted(expressions())
OUTSIDE = {"up": frozenset[str](), "otelcol_exporter_send_failed_spans": frozenset[str]()}
"""Metrics that Prometheus makes, and the collector's own."""
TARGET = {"job", "instance", "service", "le"}
"""Labels that Prometheus adds."""
_WORDS = {
    *("sum", "max", "min", "count", "rate", "increase", "min_over_time", "histogram_quantile"),
    *("by", "and", "or", "vector", "__name__"),
}


@cache
def metrics() -> tuple[Metric, ...]:
    """Every metric of the code."""
    found = []
    for path in sorted([*ROOT.glob("libs/*/phronesis*/**/*.py"), *ROOT.glob("services/*/phronesis*/**/*.py")]):
        if re.search(r"= Metric\($", path.read_text().replace('Metric("', 'Metric(\n"'), re.MULTILINE):
            module = ".".join(path.with_suffix("").parts[len(ROOT.parts) + 2 :])
            found += [value for value in vars(importlib.import_module(module)).values() if isinstance(value, Metric)]
    return tuple({metric.name: metric for metric in found}.values())


def shown(metric: Metric) -> list[str]:
    """The names under which Prometheus sees a metric."""
    endings = {Kind.COUNTER: ("_total",), Kind.HISTOGRAM: ("_bucket", "_sum", "_count"), Kind.GAUGE: ("",)}
    return [metric.name + ending for ending in endings[metric.kind]]


@cache
def known() -> dict[str, frozenset[str]]:
    """Labels by the name that Prometheus sees."""
    return {name: frozenset(metric.labels) for metric in metrics() for name in shown(metric)} | OUTSIDE


def labels(expression: str) -> Iterator[str]:
    """Labels that an expression matches or groups by."""
    for inside in re.findall(r"\{([^}]*)\}", expression):
        yield from re.findall(r"(\w+)\s*[=!]", inside)
    for inside in re.findall(r"by \(([^)]*)\)", expression):
        yield from (label.strip() for label in inside.split(","))


def names(expression: str) -> set[str]:
    """Metrics that an expression asks for."""
    bare = re.sub(r"by \([^)]*\)|\[[^\]]*\]|\{(?!__name__)[^}]*\}", " ", expression)
    return {word for word in re.findall(r"[a-z_][a-z_0-9]*", bare, re.IGNORECASE) if word not in {*_WORDS, "_total"}}


def test_the_metrics_of_the_code_are_found() -> None:
    assert {"phronesis_turns_total", "gateway_requests_total", "phronesis_retrieval_step_seconds_bucket"} <= set(known())


@for_each(("where", "expression"), ASKED)
def test_a_question_asks_for_metrics_that_there_are(where: str, expression: str) -> None:
    assert names(expression) - set(known()) == set()


@for_each(("where", "expression"), ASKED)
def test_a_question_uses_labels_that_its_metrics_have(where: str, expression: str) -> None:
    there = TARGET | {"__name__"} | {label for name in names(expression) for label in known()[name]}
    assert set(labels(expression)) - there == set()


def test_an_alert_says_how_grave_it_is_and_what_to_do() -> None:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert {rule["labels"]["severity"] for rule in rules} == {"page", "ticket"}
    assert {frozenset(rule["annotations"]) for rule in rules} == {frozenset({"summary", "do"})}


def test_the_dashboards_read_the_source_that_is_provisioned() -> None:
    provisioned = yaml.safe_load((DASHBOARDS.parent / "provisioning/datasources/phronesis.yaml").read_text())
    boards = [json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))]
    asked = {panel["datasource"]["uid"] for board in boards for panel in board["panels"] if panel["type"] != "row"}
    assert asked <= {source["uid"] for source in provisioned["datasources"]}
    assert [board["uid"] for board in boards] == ["phronesis-bus", "phronesis-model", "phronesis-turns"]
