"""The question sets: whole, varied, in their halves, and written without a look at what answers."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from evals import items
from evals.generator import Made, generate
from evals.items import HALVES, Item, load
from evals.judge import kind_of
from evals.truth import portfolio, tables
from scripts.tree import ROOT

FILES = [name for name in items.NAMES if name != "twins"]
MOST = 0.03
"""Share of a set that one sentence pattern may have."""


@cache
def everything(name: str) -> tuple[Item, ...]:
    return tuple(load(name))


@cache
def twin(seed: int) -> Made:
    return generate(seed)


def pattern(text: str) -> str:
    """A sentence without its names, figures and codes."""
    words = re.sub(r"(?<=\S )(?:[A-Z][\w./&-]*\s?)+|\d[\d.,]*", "# ", text).lower()
    return " ".join(re.sub(r"[^\w#äöüß ]", "", words).split())


def most_common(some: Sequence[Item]) -> tuple[str, float]:
    """The pattern that occurs most often, and its share of the messages that have one."""
    counts = Counter(found for item in some for turn in item.turns if len((found := pattern(turn.text)).split()) > 1)
    text, count = counts.most_common(1)[0]
    return text, count / sum(len(item.turns) for item in some)


@pytest.mark.parametrize("name", FILES)
def test_every_item_of_a_set_is_whole_and_stands_in_one_half(name: str) -> None:
    found = everything(name)
    assert len({item.id for item in found}) == len(found)
    assert all(kind_of(turn.expect) for item in found for turn in item.turns)
    assert {item.half for item in found} == set(HALVES)


def test_new_items_are_held_and_those_before_them_are_tuned_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "SETS", tmp_path)
    old, new = ({"id": id, "text": f"who is {id}?", "expect": "D"} for id in ("a", "b"))
    items.replace_held([old], "personal")
    items.replace_held([new], "personal")
    assert [(item.id, item.half) for item in items.load("personal")] == [("a", "tune"), ("b", "held")]
    with pytest.raises(ValueError, match="b is taken"):
        items.replace_held([new], "personal")


@pytest.mark.parametrize("name", FILES)
def test_no_sentence_pattern_makes_up_more_than_three_percent_of_a_set(name: str) -> None:
    text, share = most_common(everything(name))
    assert share <= MOST, text


def test_there_are_at_least_six_hundred_questions() -> None:
    found = [item for name in FILES for item in everything(name)] + twin(1).items + twin(6).items
    assert sum(len(item.turns) for item in found) >= 600


def test_dialogues_have_four_to_eight_turns_or_are_a_statement_and_a_question() -> None:
    found = [item for name in FILES for item in everything(name)] + twin(1).items + twin(6).items
    assert {len(item.turns) for item in found if item.set != "personal"} <= {1, 4, 5, 6, 7, 8}
    assert {len(item.turns) for item in found if item.set == "personal"} <= {1, 2, 4, 5, 6, 7, 8}


def test_a_seed_gives_the_same_twin_and_the_same_questions() -> None:
    one, same, other = twin(1), generate(1), twin(6)
    assert (one.twin.files, one.raw) == (same.twin.files, same.raw)
    assert one.raw != other.raw


@pytest.mark.parametrize("seed", [1, 6])
def test_a_generated_twin_has_its_size_its_years_and_its_gaps(seed: int) -> None:
    made = twin(seed)
    rows = tables.read(made.twin.ontology(), made.twin.files)
    assert 150 <= sum(map(len, rows.values())) <= 700
    assert 4 <= len(rows) <= 8
    assert all(any(row[field] in (None, []) for row in some for field in row if field != "year") for some in rows.values())
    text, share = most_common(made.items)
    assert share <= MOST, text


def test_the_portfolio_is_read_as_it_is_published() -> None:
    assert [len(portfolio.of(year)) for year in portfolio.YEARS] == [125, 184, 235, 244]
    assert portfolio.one("Crossrail", 2021)["cost"] == 18812.1
    assert portfolio.pounds(portfolio.one("New Hospital Programme", 2023)["cost"]) == {"unpublished": True}
    with pytest.raises(LookupError):
        portfolio.one("HS2", 2022)


_IN_PROCESS = {"guardrails.py", "contradictions.py"}
"""What measures a function of a service on labelled pairs, and judges no reply."""


def test_the_examiner_imports_nothing_of_the_services() -> None:
    imported = {
        name.split(".")[0]
        for file in Path(ROOT / "evals").rglob("*.py")
        if file.name not in _IN_PROCESS
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        for name in _names(node)
    }
    assert {name for name in imported if name.startswith("phronesis")} == set()


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
