"""What the model of the desk is told to say, for a turn, a task or a call of a story's own."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from tests.support.approving import AGENT, Desk
from tests.support.groq_server import Fault
from tests.support.people import Person

LOOK = {"id": "look", "description": "Look at what is known", "tool": "recall", "arguments": {"query": "x"}, "wave": 1}
ASK = {
    "id": "ask",
    "description": "Ask which year",
    "tool": "task.ask.v1",
    "arguments": {"question": "Which year?", "choices": ["2021", "2022"]},
    "wave": 2,
}
LAST = {"id": "last", "description": "Look once more", "tool": "recall", "arguments": {"query": "y"}, "wave": 3}


def planned(desk: Desk, *steps: dict[str, Any], report: str = "All of it is **here**.") -> str:
    """A goal that the model plans these steps for."""
    word = f"rail{uuid4().hex[:8]}"
    said = {
        "decompose": {"title": "T", "kind": "k", "steps": list(steps)},
        "task_report": {"title": "What was found", "text": report, "used": ["look"]},
        "criticise": {"score": 0.9, "reason": "all there"},
    }
    for purpose, answer in said.items():
        desk.model.fail(purpose, Fault(content=json.dumps(answer), about=word))
    return f"Find out about {word}"


async def wanted(desk: Desk, person: Person, arguments: dict[str, Any]) -> str:
    """A turn that waits until somebody lets it delete a node; the id of the approval."""
    word = f"knot{uuid4().hex[:8]}"
    desk.model.fail("tools", Fault(calls=[("node_delete_v1", arguments)], about=word))
    desk.model.fail("tools", Fault(content=json.dumps({"answer": "Done."}), about=word))
    answer = await person.submit(f"Please delete this goal: {word}.", agent=AGENT)
    return str((await desk.waits(answer.json()["turn_id"]))["approval_id"])


async def answered(desk: Desk, person: Person, stall: float = 0.0) -> tuple[str, str]:
    """A turn for which the model thought so many seconds, and what it was asked."""
    word = f"wren{uuid4().hex[:8]}"
    desk.model.fail("tools", Fault(content=json.dumps({"answer": "Noted.", "confidence": 0.9}), about=word, stall=stall))
    text = f"Note what I say about {word}"
    answer = await person.submit(text, agent="nova")
    turn = await person.ended(answer.json()["turn_id"])
    assert turn["status"] == "completed", turn
    return str(turn["turn_id"]), text
