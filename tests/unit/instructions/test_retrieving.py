"""What an analyst is given for a mode or for tags."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from phronesis_contracts import BadRequest, NotFound, TooLarge
from phronesis_contracts.instructions import InstructionText, RetrieveInstructions
from phronesis_instructions.library.content import read_matrix
from phronesis_instructions.library.handlers import LibraryCache, LibraryHandlers
from phronesis_instructions.library.texts import Overlay, Running, RunningArm, Text
from tests.support.instructions import CALL, HashedArms, MemoryStore
from tests.support.logs import logged

MATRIX = read_matrix()


def element(tag: str, *dependencies: str, **changes: object) -> Text:
    text = Text(tag, "element", f"About {tag}.", "1.0.0", "active", 10, tier=3, dependencies=dependencies)
    return replace(text, **changes)  # type: ignore[arg-type]


async def retrieved(*texts: Text, overlay: Overlay | None = None, **asked: object) -> InstructionText:
    store = MemoryStore()
    await store.release(MATRIX)
    store.texts |= {text.tag: text for text in texts}
    if overlay is not None:
        store.overlays["acme"] = overlay
    handlers = LibraryHandlers(store, LibraryCache(store, 60.0), HashedArms())
    return await handlers.retrieve_instructions(CALL, RetrieveInstructions.model_validate(asked))


def shipped(tag: str) -> Text:
    return next(text for text in MATRIX.texts() if text.tag == tag)


@pytest.mark.req("N-112", "N-116", "N-123", "N-174", "NC-051", "T-005", "T-007")
@pytest.mark.parametrize("mode", "ABCD")
async def test_a_mode_gives_its_bundle_as_it_is(mode: str) -> None:
    bundle = shipped(f"tier2_mode_{mode.lower()}")
    assert await retrieved(mode=mode) == InstructionText(
        text=bundle.content, tags=(bundle.tag,), tokens=bundle.tokens, version="4.0.0"
    )


@pytest.mark.req("N-113", "N-115", "N-117", "N-123", "N-177", "NC-048", "T-006", "T-007")
async def test_elements_are_each_wrapped_once_and_parted_by_a_blank_line() -> None:
    found = await retrieved(elements=["EntityProject", "chart_type_Column"])
    project, column = shipped("EntityProject"), shipped("chart_type_Column")
    assert found.text == (
        f'<element name="EntityProject">\n{project.content}\n</element>\n\n'
        f'<element name="chart_type_Column">\n{column.content}\n</element>'
    )
    assert (found.tags, found.tokens) == (("EntityProject", "chart_type_Column"), project.tokens + column.tokens)


@pytest.mark.req("N-125")
async def test_elements_come_in_the_order_asked_once_each_with_what_there_is_not() -> None:
    found = await retrieved(element("A"), element("B"), elements=["B", "A", "A", "Nope"])
    assert (found.tags, found.missing) == (("B", "A"), ("Nope",))


@pytest.mark.req("NC-032")
async def test_a_tag_is_looked_up_with_its_case() -> None:
    found = await retrieved(elements=["chart_type_Column", "chart_type_column"])
    assert (found.tags, found.missing) == (("chart_type_Column",), ("chart_type_column",))


@pytest.mark.req("N-124")
async def test_what_an_element_depends_on_follows_it_once_however_deep_and_round() -> None:
    texts = (element("A", "B", "D"), element("B", "C"), element("C", "A"), element("D"), element("E", "D"))
    assert (await retrieved(*texts, elements=["A", "E"])).tags == ("A", "B", "C", "D", "E")


@pytest.mark.req("N-114", "N-212")
@pytest.mark.parametrize("status", ["draft", "deprecated"])
async def test_what_is_not_active_is_not_given(status: str) -> None:
    found = await retrieved(element("A", status=status), element("B"), elements=["A", "B"])
    assert (found.tags, found.missing) == (("B",), ("A",))


@pytest.mark.req("N-111", "N-120", "N-121")
async def test_nothing_found_is_told_with_both_ways_to_ask(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(NotFound, match=r"Nope.* mode \(A to D\).* elements"):
        await retrieved(elements=["Nope"])
    assert [record.message for record in logged(caplog, "instructions") if record.levelno == logging.WARNING] == [
        "no active instructions: Nope"
    ]


@pytest.mark.req("N-121", "NC-049", "NC-056")
async def test_a_mode_without_a_bundle_is_not_found() -> None:
    with pytest.raises(NotFound, match="mode A"):
        await retrieved(replace(shipped("tier2_mode_a"), status="draft"), mode="A")


@pytest.mark.parametrize("tag", ["tier1_bootstrap", "tier2_mode_a", "tier2_mode_a/preface", "dialogue/router"])
@pytest.mark.req("NC-008", "NC-052", "T-007")
async def test_bundles_and_agents_own_texts_are_no_elements(tag: str) -> None:
    texts = [element("dialogue/router")] if tag.startswith("dialogue") else []
    with pytest.raises(NotFound):
        await retrieved(*texts, elements=[tag])


@pytest.mark.req("N-109", "N-110", "N-111", "NC-053", "NC-073")
@pytest.mark.parametrize("asked", [{}, {"mode": "A", "elements": ["EntityProject"]}])
async def test_neither_or_both_of_mode_and_elements_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="either mode or elements"):
        await retrieved(**asked)


@pytest.mark.req("N-107", "N-108", "N-111", "NC-015", "NC-046", "NC-054", "T-002")
@pytest.mark.parametrize(
    "asked",
    [
        {"mode": "E"},
        {"mode": "a"},
        {"elements": []},
        {"elements": "EntityProject"},
        {"elements": [1]},
        {"tier": "elements", "elements": ["EntityProject"]},
        {"elements": ["x"] * 65},
    ],
)
def test_anything_but_one_mode_or_some_tags_is_refused(asked: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RetrieveInstructions.model_validate(asked)


@pytest.mark.req("N-119", "N-227", "NC-050")
async def test_the_tokens_told_are_summed_and_logged_and_a_text_without_a_count_counts_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        found = await retrieved(element("A", tokens=7), element("B", tokens=0), elements=["A", "B"])
    assert found.tokens == 7
    assert "instructions told: 7 tokens of 2 texts (A, B)" in [record.message for record in logged(caplog, "instructions")]


async def test_more_than_one_answer_holds_is_refused_with_what_to_do() -> None:
    big = [element(f"Big{n}", content="x" * 100_000) for n in range(5)]
    with pytest.raises(TooLarge, match="fewer"):
        await retrieved(*big, elements=[text.tag for text in big])


async def test_a_tenants_own_part_stands_in_every_bundle_of_its_own() -> None:
    own = replace(shipped("step3_recall"), content="Read anew.", own=True)
    found = await retrieved(overlay=Overlay(3, {own.tag: own}), mode="B")
    assert "\n\nRead anew.\n\n" in found.text
    assert (shipped("step3_recall").content in found.text, found.version) == (False, "4.0.0+3")


async def test_an_arm_is_told_its_own_text_and_the_answer_names_it() -> None:
    arms = (RunningArm("control", 1), RunningArm("short", 1, {"step5_return": "Be short.", "EntityRisk": "Risks."}))
    found = await retrieved(overlay=Overlay(0, {}, (Running("tone", arms),)), mode="A")
    assert found.arms.keys() == {"tone"}
    assert ("Be short." in found.text) == (found.arms["tone"] == "short")
    untouched = await retrieved(overlay=Overlay(0, {}, (Running("tone", arms),)), elements=["EntityProject"])
    assert untouched.arms == {}
