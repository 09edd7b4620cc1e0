"""What the scripted model does with tools where nothing else is scripted: the steps in order, then an answer of what it read.

A message can name its mode (`mode B`); a greeting is I, and anything else is A.
"""

from __future__ import annotations

import json
import re
from typing import Any

_MODE = re.compile(r"\bmode ([A-J])\b")
_GREETING = re.compile(r"\W*(?:hi|hello|thanks|thank you|good (?:morning|evening))\b", re.I)
_CHOSEN = re.compile(r"was classified as mode ([A-D])\b")
_BLOCK = re.compile(r"\A<<[0-9a-f]{16} \w+>>\n(.*)\n<<end [0-9a-f]{16} \w+>>\Z", re.S)
QUERY = "MATCH (p:EntityProject) WHERE p.year = $year RETURN count(p) AS projects"


def classified(message: str) -> str:
    """A classification: the mode that the message names, with an answer where that mode is answered at once."""
    named = _MODE.search(message)
    mode = named[1] if named else "I" if _GREETING.match(message) else "A"
    answer = None if mode in "ABCD" else f"Answered at once in mode {mode}."
    told: dict[str, Any] = {
        "mode": mode,
        "intent": "to know",
        "thought_trace": "scripted",
        "answer": answer,
        "analysis": [],
        "confidence": 0.8,
    }
    return json.dumps(told)


def made(request: dict[str, Any]) -> list[tuple[str, Any]]:
    """The tool calls that stand in a prompt, in order: name and arguments."""
    messages = request["messages"]
    functions = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def results(request: dict[str, Any]) -> list[str]:
    """What the tools gave, as a prompt shows it, boundaries aside."""
    told = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    return [found[1] if (found := _BLOCK.match(text)) else text for text in told]


def next_calls(request: dict[str, Any]) -> list[tuple[str, Any]]:
    """The tool to call next: each of the three once, in the order of the steps; none where no more may be called."""
    if request.get("tool_choice") == "none":
        return []
    done = {name for name, _ in made(request)}
    chosen = _CHOSEN.search(request["messages"][0]["content"])
    steps: list[tuple[str, Any]] = [
        ("recall_memory", {"scope": "personal", "query_summary": "what matters here", "limit": 3}),
        ("retrieve_instructions", {"mode": chosen[1] if chosen else "A"}),
        ("read_neo4j_cypher", {"cypher_query": QUERY, "parameters": {"year": 2022}}),
    ]
    return next(([step] for step in steps if step[0] not in done), [])


def drafted(request: dict[str, Any]) -> str:
    """A final answer of the first row that was read last."""
    rows: list[Any] = []
    for told in results(request):
        try:
            found = json.loads(told)
        except ValueError:
            continue
        if isinstance(found, list):
            rows = found
    row = rows[0] if rows and isinstance(rows[0], dict) else {}
    said = ", ".join(f"{name}: {value}" for name, value in row.items()) or "nothing was found"
    return draft(answer=f"The records say {said}.")


def draft(**parts: Any) -> str:
    """A final answer as a model writes it; `parts` replace its own."""
    whole: dict[str, Any] = {
        "memory_process": {"intent": "to know", "thought_trace": "Needed EntityProject."},
        "answer": "There are 3 projects.",
        "analysis": ["Three is few."],
        "visualizations": [],
        "confidence": 0.9,
    }
    return json.dumps(whole | parts)


def called(calls: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Tool calls as the provider states them."""
    return [
        {
            "id": f"scripted_{at}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for at, (name, given) in enumerate(calls)
    ]
