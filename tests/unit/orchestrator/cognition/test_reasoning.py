"""The reasoning context: what each signal says, and what it leaves out."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass, replace
from typing import Any

import pytest

from phronesis_contracts import Message, Risk, Rpc, Tool
from phronesis_orchestrator.agents.cognition.thought import HEADER, MOST, ReasoningContext, Tone, ToneLabel, ToolRecord


class Anything(Message):
    """What a tool takes and gives here."""


def a_tool(name: str, risk: Risk = Risk.READ, irreversible: bool = False) -> Tool[Any, Any]:
    """A tool of this name."""
    return Tool(name, "Does it.", Rpc(f"social.v1.{name}", Anything, Anything), risk=risk, irreversible=irreversible)


POST = a_tool("linkedin.post_text", Risk.HIGH, irreversible=True)
READ = a_tool("linkedin.read")
URGENT = Tone(ToneLabel.URGENT, 0.9)
LINKEDIN = ToolRecord("linkedin", 20, 17)
WHOLE: dict[str, Any] = {
    "tone": URGENT,
    "tools": (POST, READ),
    "records": (LINKEDIN,),
    "calibrations": ("be more concise",),
    "recalled": 700,
}


@pytest.mark.req("V-078", "V-079", "V-080", "V-069", "V-081", "V-136", "V-082", "V-083", "V-087")
def test_every_signal_has_its_line_under_one_header() -> None:
    assert ReasoningContext.build(**WHOLE).to_prompt().split("\n") == [
        "REASONING CONTEXT",
        "- Tone: urgent (urgency=0.9)",
        "- Risk: HIGH — linkedin post_text is irreversible",
        "- Reliability: linkedin: 85% success (20 uses)",
        "- Calibration: be more concise",
        "- Memory: strong context available",
    ]


@pytest.mark.req("V-078", "V-C02")
def test_it_is_a_value_that_is_built_without_waiting() -> None:
    assert is_dataclass(ReasoningContext)
    assert not inspect.iscoroutinefunction(ReasoningContext.build)
    assert ReasoningContext.build(**WHOLE) == ReasoningContext.build(**WHOLE)


@pytest.mark.req("V-088")
@pytest.mark.parametrize(
    ("missing", "gone"),
    [
        ({"tone": None}, "- Tone"),
        ({"tools": (READ,)}, "- Risk"),
        ({"records": ()}, "- Reliability"),
        ({"calibrations": ()}, "- Calibration"),
        ({"recalled": None}, "- Memory"),
    ],
)
def test_a_missing_signal_has_no_line(missing: dict[str, Any], gone: str) -> None:
    lines = ReasoningContext.build(**{**WHOLE, **missing}).to_prompt().split("\n")
    assert len(lines) == 5
    assert not [line for line in lines if line.startswith(gone)]


@pytest.mark.req("V-088")
def test_without_any_signal_there_is_no_header() -> None:
    assert ReasoningContext.build().to_prompt() == ""
    assert ReasoningContext.build(tools=(READ,)).lines() == ()


@pytest.mark.req("V-083", "V-C12")
@pytest.mark.parametrize(
    ("size", "said"),
    [
        (0, "no stored context"),
        (1, "limited context available"),
        (499, "limited context available"),
        (500, "strong context available"),
    ],
)
def test_the_confidence_follows_from_the_length_of_what_was_recalled(size: int, said: str) -> None:
    assert ReasoningContext.build(recalled=size).confidence == said
    assert ReasoningContext.build(recalled=size, strong=size + 1).confidence != "strong context available"


@pytest.mark.req("V-090")
def test_a_tool_without_uses_says_nothing() -> None:
    assert ReasoningContext.build(tools=(POST,), records=(ToolRecord("linkedin", 0, 0),)).reliability == ()


@pytest.mark.req("V-091")
def test_at_most_five_tools_are_named_those_of_the_message_first_and_none_out_of_scope() -> None:
    tools = [a_tool(f"tool{at}.act", Risk.MEDIUM) for at in range(30)]
    records = [ToolRecord(f"tool{at}.act", 10 + at, 5) for at in range(30)] + [ToolRecord("other", 900, 900)]
    built = ReasoningContext.build(tools=tools, records=records, said="use tool7, please")
    assert (len(built.risks), len(built.reliability)) == (MOST, MOST)
    assert built.reliability[:2] == ("tool7 act: 29% success (17 uses)", "tool29 act: 13% success (39 uses)")
    assert built.risks[0] == "MEDIUM — tool7 act changes what is stored"


@pytest.mark.req("V-080", "V-091")
def test_the_greater_risk_is_named_before_the_lesser_and_reads_not_at_all() -> None:
    tools = (READ, a_tool("a.change", Risk.MEDIUM), POST, a_tool("b.low", Risk.LOW), a_tool("node.delete.v1", Risk.HIGH, True))
    assert ReasoningContext.build(tools=tools).risks == (
        "HIGH — linkedin post_text is irreversible",
        "HIGH — node delete is irreversible",
        "MEDIUM — a change changes what is stored",
    )


@pytest.mark.req("V-176")
def test_a_header_stands_once_whatever_the_signals() -> None:
    assert replace(ReasoningContext.build(**WHOLE)).to_prompt().count(HEADER) == 1
