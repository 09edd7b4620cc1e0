"""What can go wrong with a model call, and what becomes of a turn in which it does (D.17)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.groq_server import Fault

Kind = Literal["away", "broken", "harmless"]
CALLS = ("router", "router.repair", "final", "final.repair")
"""The calls of a turn; a repair is made where the answer before it was no good."""
NOT_JSON = "That I cannot say as JSON."
SALVAGED = "Saved from the wreck."
_CUT = f'{{"user_response": "{SALVAGED}", "next_agent_directive": "foc'
_REFUSED = {"type": "invalid_request_error", "failed_generation": '{"name": "delete_all"'}


@dataclass(frozen=True)
class ModelFault:
    """One fault.

    Args:
        name: as the table names it.
        kind: `away`: no answer was had; `broken`: the answer is no good; `harmless`: the answer can be used.
        fault: what the scripted server does.
        content: what the model says, by the answer that was wanted; in place of `fault`'s.
        calls: the calls that it can befall.
        tries: calls that the provider sees before it is given up.
        keeps: whether the directive before stays though the answer is used.
        saved: whether a reply can be saved of a final answer that is no good.
        quick: whether it takes no time to speak of.
    """

    name: str
    kind: Kind
    fault: dict[str, Any] = field(default_factory=dict)
    content: dict[str, str] = field(default_factory=dict)
    calls: tuple[str, ...] = CALLS
    tries: int = 3
    keeps: bool = False
    saved: bool = False
    quick: bool = True

    def script(self, call: str, about: str = "", times: int = 9) -> list[tuple[str, Fault]]:
        """What the server is told, so that `call` meets this fault: purposes and faults."""
        purpose, _, repair = call.partition(".")
        said = {"content": self.content[purpose]} if purpose in self.content else {}
        mine = Fault(**{**self.fault, **said, "about": about, "times": times if repair or self.kind == "away" else 1})
        before = [(purpose, Fault(content=NOT_JSON, about=about))] if repair else []
        return [*before, (call, mine)]


@dataclass(frozen=True)
class Expected:
    """What becomes of a turn that asks memory and meets one fault in one call."""

    status: int
    code: str | None
    degraded: tuple[str, ...]
    directive_changes: bool
    calls: int
    """Model calls, each try counted."""


def expected(fault: ModelFault, call: str) -> Expected:
    """The list's own rules, and the rules' answer where a final call gives none."""
    purpose, _, repair = call.partition(".")
    before = (2 if repair else 1) if purpose == "final" else bool(repair)
    after = purpose == "router"
    if fault.kind == "harmless":
        return Expected(200, None, (), not fault.keeps, before + 1 + after)
    if fault.kind == "broken" and not repair:
        return Expected(200, None, (), True, before + 2 + after)
    calls = before + (fault.tries if fault.kind == "away" else 1) + after
    if purpose == "router":
        return Expected(200, None, ("router",), True, calls)
    return Expected(200, None, ("final" if fault.saved else "model",), False, calls)


def cells(*, quick: bool = False) -> Iterator[tuple[ModelFault, str]]:
    """Each fault with each call that it can befall; with `quick` only those that take no time."""
    for fault in FAULTS:
        for call in fault.calls:
            if fault.quick or not quick:
                yield fault, call


def _both(router: str, final: str) -> dict[str, str]:
    return {"router": router, "final": final}


def _reply(**changes: Any) -> str:
    answer = {"user_response": "Pipes.", "next_agent_directive": "focused_analyst", "directive_reasoning": "figures"}
    return json.dumps(answer | changes)


_ROUTER, _FINAL = CALLS[:2], CALLS[2:]
_DEEP = '{"a":' * 50_000
FAULTS = (
    ModelFault("429", "away", {"status": 429}),
    ModelFault("429, Retry-After: 0", "away", {"status": 429, "headers": {"retry-after": "0"}}),
    ModelFault("429, Retry-After: 1", "away", {"status": 429, "headers": {"retry-after": "1"}}, quick=False),
    ModelFault("429, Retry-After: 60", "away", {"status": 429, "headers": {"retry-after": "60"}}, tries=1),
    ModelFault(
        "429, Retry-After: a date",
        "away",
        {"status": 429, "headers": {"retry-after": "Fri, 31 Dec 2094 23:59:59 GMT"}},
        tries=1,
    ),
    ModelFault(
        "429, no quota left",
        "away",
        {"status": 429, "error": {"code": "insufficient_quota"}},
        tries=1,
    ),
    ModelFault("500", "away", {"status": 500}),
    ModelFault("502", "away", {"status": 502, "body": "<html>bad gateway</html>"}),
    ModelFault("503, Retry-After: 0", "away", {"status": 503, "headers": {"retry-after": "0"}}),
    ModelFault("no byte comes", "away", {"stall": 60}, tries=1, quick=False),
    ModelFault("a byte in ten seconds", "away", {"drip": 10}, tries=1, quick=False),
    ModelFault("body cut, connection closed", "away", {"cut": True}),
    ModelFault("connection reset", "away", {"reset": True}),
    ModelFault("200 with HTML", "away", {"body": "<html>a proxy</html>"}),
    ModelFault("200 with half of a completion", "away", {"body": '{"choices": [{"message": {"content": "x'}),
    ModelFault("200 with other JSON", "away", {"body": '{"choices": "none"}'}),
    ModelFault("body of 5 MB", "away", {"body": '{"choices": "' + "x" * 5_000_000 + '"}'}, tries=1),
    ModelFault("key refused", "away", {"status": 401, "error": {"code": "invalid_api_key"}}, tries=1),
    ModelFault("prompt too long", "away", {"status": 400, "error": {"code": "context_length_exceeded"}}),
    ModelFault("malformed JSON", "broken", {"content": '{"decision": "query_memory", "user_response": '}),
    ModelFault("JSON that breaks the schema", "broken", content=_both('{"decision": 5}', '{"user_response": ["x"]}')),
    ModelFault("JSON that is no object", "broken", {"content": '["respond_directly"]'}),
    ModelFault("JSON nested 50,000 deep", "broken", {"content": _DEEP}),
    ModelFault(
        "a key stands twice",
        "broken",
        content=_both(
            '{"decision": "query_memory", "decision": "respond_directly"}',
            _reply()[:-1] + ', "next_agent_directive": "curious_explorer"}',
        ),
        saved=True,
    ),
    ModelFault(
        "answer of 1 MB",
        "broken",
        content=_both(json.dumps({"decision": "x" * 1_000_000}), _reply(user_response="y" * 1_000_000)),
        saved=True,
    ),
    ModelFault("nothing said", "broken", {"content": ""}),
    ModelFault("no choices", "broken", {"without": ("choices",)}),
    ModelFault("a tool that is not offered", "broken", {"tool_calls": True}),
    ModelFault("the provider refused a tool call", "broken", {"status": 400, "error": {"code": "tool_use_failed", **_REFUSED}}),
    ModelFault(
        "the provider refused the JSON", "broken", {"status": 400, "error": {"code": "json_validate_failed", **_REFUSED}}
    ),
    ModelFault("held back by a filter", "broken", {"content": "", "finish": "content_filter"}),
    ModelFault("cut at the greatest length", "broken", {"content": _CUT, "finish": "length"}, saved=True),
    ModelFault("unknown decision", "broken", {"content": '{"decision": "run_cypher"}'}, calls=_ROUTER),
    ModelFault("blank reply", "broken", content=_both("", _reply(user_response=" \n")), calls=_FINAL),
    ModelFault(
        "unknown directive",
        "harmless",
        content=_both("", _reply(next_agent_directive="angry_pirate")),
        calls=_FINAL,
        keeps=True,
    ),
    ModelFault("no key phrases", "harmless", {"content": '{"decision": "query_memory", "key_phrases": []}'}, calls=_ROUTER),
    ModelFault("no draft", "harmless", {"content": '{"decision": "respond_directly", "direct_response": ""}'}, calls=_ROUTER),
    ModelFault("no usage told", "harmless", {"without": ("usage",)}),
    ModelFault(
        "NUL in the text",
        "harmless",
        content=_both('{"decision": "query_memory", "key_phrases": ["a\\u0000b"]}', _reply(user_response="a\0b")),
    ),
)
