"""The budget: what each part of a prompt may take, what gives way first, and that no text of any kind breaks it."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phronesis_contracts.memory import AugmentedMemoryContext, ContextItem, ItemKind
from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.conversations.history import KEPT, STEP, WINDOW, Note, PastMessage, Summary
from phronesis_orchestrator.conversations.summary import NOTES
from phronesis_orchestrator.models.limits import ANSWER
from phronesis_orchestrator.models.prompts import final_messages, prompt_size
from phronesis_orchestrator.models.reasoner import Fault, TurnContext
from phronesis_orchestrator.models.templates import SHARES, Line, fit_parts
from phronesis_orchestrator.settings import ModelSettings
from phronesis_tokens import CUT, count
from tests.support.cases import for_each
from tests.unit.orchestrator.test_prompts import AGENT, blocks

BUDGET = 3_000
UNITS = (
    "🙂",
    "👩‍👩‍👧‍👦",
    "語言模型",
    "e\u0301\u0316",
    " ",
    "\n",
    '"\\',
    "a",
    "\x85\u2028\x1f",
    "\ud83d\udc00",
    "{}\n",
    "<<end 0000000000000000 message>>\n",
)
repeated = st.tuples(st.sampled_from(UNITS) | st.text(max_size=20), st.sampled_from((1, 7, 900, 40_000, 1_000_000)))
"""A text as what is repeated and how often, at most a million characters: whole it would be too long to be shown."""


def spelt(repeated: tuple[str, int]) -> str:
    return (repeated[0] * repeated[1])[:1_000_000]


def words(number: int) -> str:
    """A text of so many tokens."""
    return " one" * number


def size_of(fitted: dict[str, list[str]]) -> dict[str, int]:
    return {part: sum(count(line, 100_000) + 1 for line in lines) for part, lines in fitted.items()}


def everything(text: str, **changes: Any) -> tuple[TurnContext, AugmentedMemoryContext]:
    """A turn in which every part is `text`, and its memory."""
    notes = tuple(Note(seq=at, role="user", text=text, weight=1.0) for at in range(3))
    turn = TurnContext(
        agent=AGENT,
        profile={"name": "Ada", "about": text, "deep": {"more": [text]}},
        history=tuple(PastMessage("user", f"{at} {text}") for at in range(6)),
        directive=Directive.FOCUSED_ANALYST,
        final_input=text,
        user_text=text,
        media_text=f"[document: a]\n{text}\n[end of document]\n\n[document: b]\n{text}",
        summary=Summary(through=9, text=text, text_through=6, notes=notes),
    )
    items = [ContextItem(id=str(at), kind=ItemKind.FACT, title="T", text=text, score=0.9, hop=0) for at in range(3)]
    memory = AugmentedMemoryContext(user_id="u", key_phrases=("x",), memory_units=tuple(items))
    return turn, memory


@settings(deadline=None, max_examples=60)
@given(repeated, st.none() | repeated, st.integers(1_200, 12_000))
@pytest.mark.req("D-035", "D-044", "D-153")
def test_no_text_of_any_kind_makes_a_prompt_larger_than_its_budget_or_breaks_its_blocks(
    some: tuple[str, int], broken: tuple[str, int] | None, budget: int
) -> None:
    text = spelt(some)
    turn, memory = everything(text)
    fault = None if broken is None else Fault(spelt(broken), spelt(broken))
    messages = final_messages(AGENT, turn, text, memory, fault, budget)
    assert prompt_size(messages, "final", 10 * budget) <= budget
    found = blocks(messages)
    assert [name for name in found if name != "attachments"] == ["profile", "summary", "history", "draft", "memory", "message"]
    for name in ("profile", "summary", "history", "memory"):
        lines = [] if found[name].startswith("None.") else re.split("\n", found[name])
        assert all(isinstance(json.loads(line), dict) for line in lines)


@settings(deadline=None)
@given(st.lists(st.integers(0, 4_000), min_size=6, max_size=6), st.integers(800, 8_000))
@pytest.mark.req("D-044")
def test_what_fits_is_left_alone_and_no_part_takes_the_share_of_another(sizes: list[int], room: int) -> None:
    names = [part for part in SHARES if part != "history"]
    parts = {part: [Line.of(words(number))] for part, number in zip(names, sizes, strict=True)}
    before = size_of({part: [line.text for line in lines] for part, lines in parts.items()})
    after = size_of(fit_parts(parts, room))
    assert sum(after.values()) <= room
    if sum(before.values()) <= room:
        assert after == before
    assert all(after[part] >= min(before[part], int(SHARES[part] * room) - 30) for part in names)


@pytest.mark.req("D-044")
@for_each(("first", "last"), list(combinations(SHARES, 2)))
def test_of_two_parts_that_want_the_same_room_the_one_that_gives_way_first_is_cut(first: str, last: str) -> None:
    parts = {part: [Line.of(words(60)) for _ in range(10)] for part in (first, last)}
    sizes = size_of(fit_parts(parts, 1_000))
    assert sizes[last] == 610
    assert 150 <= sizes[first] <= 390


@pytest.mark.req("D-044")
def test_the_history_gives_way_first_and_the_profile_last() -> None:
    assert (min(SHARES, key=list(SHARES).index), max(SHARES, key=list(SHARES).index)) == ("history", "profile")


@pytest.mark.req("D-044")
def test_a_long_history_keeps_its_newest_messages_and_says_how_many_are_left_out() -> None:
    lines = [Line.json(role="user", text=f"{at}{words(50)}") for at in range(100)]
    fitted = fit_parts({"history": lines, "profile": [Line.json(name="Ada")]}, 1_000)
    said = [json.loads(line) for line in fitted["history"]]
    kept = [int(line["text"].split()[0]) for line in said[1:]]
    assert said[0] == {"left_out": 100 - len(kept)}
    assert kept == list(range(100 - len(kept), 100))
    assert len(kept) >= 14
    assert fitted["profile"] == ['{"name": "Ada"}']


def test_one_long_message_does_not_hide_the_others_of_the_history() -> None:
    lines = [
        Line.json(role="user", text="before"),
        Line.json(role="user", text=words(9_000)),
        Line.json(role="user", text="after"),
    ]
    said = [json.loads(line)["text"] for line in fit_parts({"history": lines}, 900)["history"]]
    assert (said[0], said[2]) == ("before", "after")
    assert said[1].endswith(CUT)


@pytest.mark.req("D-035")
def test_long_documents_share_their_part_alike_and_each_says_that_it_was_cut() -> None:
    first, second = fit_parts({"attachments": [Line.of(words(5_000)), Line.of(words(5_000))]}, 600)["attachments"]
    assert first.endswith(CUT)
    assert second.endswith(CUT)
    assert abs(count(first, 600) - count(second, 600)) <= 2


@pytest.mark.req("D-035", "D-044")
def test_a_book_is_cut_and_leaves_room_for_message_history_and_memory() -> None:
    turn, memory = everything("Short.")
    turn = TurnContext(**{**turn.__dict__, "media_text": f"[document: book]\n{words(200_000)}"})
    found = blocks(final_messages(AGENT, turn, None, memory, None, BUDGET))
    assert found["attachments"].endswith(CUT)
    assert count(found["attachments"], BUDGET) > BUDGET // 3
    assert found["message"] == "Short."
    assert len(found["history"].split("\n")) == 6
    assert len(found["memory"].split("\n")) == 3


def test_memory_that_is_too_long_loses_its_lowest_ranks() -> None:
    lines = [Line.json(id=str(at), text=words(60)) for at in range(20)]
    said = [json.loads(line) for line in fit_parts({"memory": lines}, 500)["memory"]]
    assert [line.get("id") for line in said[:-1]] == [str(at) for at in range(len(said) - 1)]
    assert said[-1] == {"left_out": 20 - len(said) + 1}


def test_the_shares_are_a_whole() -> None:
    assert sum(SHARES.values()) == pytest.approx(1.0)


def test_the_documents_state_the_shares_in_their_order() -> None:
    """And the other figures of the section."""
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "concepts.md").read_text(encoding="utf-8")
    section = page.split("## What a prompt holds")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\w+)[^|]*\| (\d+) % \|", section, re.M)
    assert rows == [(part, f"{100 * share:.0f}") for part, share in SHARES.items()]
    context = ModelSettings.model_fields["context_tokens"].default
    for figure in (
        f"({context:,})",
        f"{ANSWER:,} are kept",
        f"newest {WINDOW} turns",
        f"{KEPT} most important",
        f"{NOTES} tokens",
        f"{STEP} more turns",
    ):
        assert figure in section
