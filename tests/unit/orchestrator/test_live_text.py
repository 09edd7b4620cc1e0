"""The reply's text read out of a JSON object that comes in pieces."""

from __future__ import annotations

import json
import re
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phronesis_contracts.orchestrator import TurnProgress
from phronesis_orchestrator.models.completions import FieldText
from phronesis_orchestrator.models.parsing import make_storable
from phronesis_orchestrator.turns import execution
from phronesis_orchestrator.turns.execution import LiveText
from tests.unit.orchestrator.fakes import claim

OBJECTS = st.dictionaries(
    st.text(max_size=5).filter(lambda name: name != "answer"),
    st.recursive(st.text(max_size=8) | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3), max_leaves=4),
    max_size=3,
)


def read(text: str, sizes: list[int], field: str = "answer") -> str:
    """What is read of a text that comes in pieces of these sizes, and then letter by letter."""
    reader, found, at = FieldText(field), "", 0
    for size in [*sizes, *[1] * len(text)]:
        found += reader.feed(text[at : at + size])
        at += size
    return found


@given(st.text(max_size=60), OBJECTS, OBJECTS, st.lists(st.integers(1, 9), max_size=9), st.booleans(), st.booleans())
def test_whatever_the_pieces_the_text_is_the_one_that_the_whole_object_holds(
    answer: str, before: dict[str, object], behind: dict[str, object], sizes: list[int], plain: bool, indented: bool
) -> None:
    whole = json.dumps({**before, "answer": answer, **behind}, ensure_ascii=not plain, indent=2 if indented else None)
    assert read(whole, sizes) == str(make_storable(answer)).strip()


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('Sure: {"answer": "Yes."}', "Yes."),
        ('```json\n{"x": {"answer": "inner"}, "answer": "outer"}\n```', "outer"),
        ('{"answers": "no", "answer": "yes"}', "yes"),
        ('{"x": "\\"answer\\": \\"no\\"", "answer": "yes"}', "yes"),
        ('{"answer": null}', ""),
        ('{"answer": ["no"]}', ""),
        ('{"answer": "cut in the mid', "cut in the mid"),
        ('{"answer": "a\\ud83d\\ude00b\\ud83dc"}', "a\U0001f600bc"),
        ("no object at all", ""),
    ],
)
def test_only_the_text_of_the_field_itself_is_shown(said: str, found: str) -> None:
    assert read(said, []) == found


@given(
    st.lists(st.sampled_from(["![a]", "[a](", "](", "!", "[", "]", "<", "img ", "https://evil.test", ")", "word"]), max_size=12)
)
async def test_nothing_that_is_shown_while_it_is_written_can_be_loaded_or_followed(pieces: list[str]) -> None:
    shown: list[str] = []

    async def show(who: object, line: TurnProgress) -> None:
        shown.append(line.text or "")

    with mock.patch.object(execution, "_EVERY", 0.0):
        live = LiveText(claim("Look."), show)
        for piece in pieces:
            await live.add(piece)
        await live.flush()
    assert not re.search(r"!\[|\]\(|\]\[|\]:|<[a-zA-Z!/]", "".join(shown))
