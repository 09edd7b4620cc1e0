"""What the scripted model says where no fault is scripted: sensible answers, made from the prompt it was sent."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support import groq_tools

_BLOCK = re.compile(r"^<<([0-9a-f]{16}) (\w+)>>\n(.*?)\n<<end \1 \2>>$", re.M | re.S)
_GREETING = re.compile(r"\W*(?:hi|hello|hey|thanks|thank you|good (?:morning|evening))\b[\w\s]{0,20}\W*", re.I)
_STANCE = re.compile(r"\bin the stance (\w+)")
_TIER = re.compile(r"\btier (flash|haiku|sonnet|quality)\b")
_OF_TASKS = {"plan": "decompose", "replan": "decompose", "report": "task_report"}
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SMALL = frozenset("a an and are for how in is it of on or the to was what when which who why does do".split())


def purpose_of(request: dict[str, Any], step: str | None) -> str:
    """`repair` where the model's own answer is in the messages; else what `kind_of` says.

    Of an analyst's calls: `classify`, `tools` (whatever stands before in the messages) and `rewrite`.
    """
    if (kind := kind_of(request, step)) in ("tools", "rewrite", "client", "form"):
        return kind
    if any(message["role"] == "assistant" for message in request["messages"]):
        return "repair"
    return kind_of(request, step)


def kind_of(request: dict[str, Any], step: str | None) -> str:
    """Whether the router's answer is wanted, a summary, the final answer, or an analyst's call, repaired or not."""
    if (made := (step or "").rpartition("/")[2].partition(".")[0]) in ("client", "form"):
        return made
    if "tools" in request:
        return "tools"
    if any(message["role"] == "tool" for message in request["messages"]) or (step or "").rpartition("/")[2].startswith(
        "answer."
    ):
        return "rewrite"
    named = request.get("response_format", {}).get("json_schema", {}).get("name")
    if named:
        return str(named)
    if (made := (step or "").rpartition("/")[2].partition(".")[0]) in ("understand", "formulate", "wishes"):
        return made
    if step and "/" in step:
        made = step.rsplit("/", 1)[1]
        if made in ("intent", "preflight", "reflect"):
            return made
        if made.startswith("task."):
            return _OF_TASKS.get(made.split(".")[1], "final")
        return "router" if made.startswith("route") else "summarise" if made == "summarise" else "final"
    return "router" if "key_phrases" in request["messages"][0]["content"] else "final"


def blocks(request: dict[str, Any]) -> dict[str, str]:
    """The blocks of data in a prompt, by name."""
    return {name: text for _, name, text in _BLOCK.findall(request["messages"][1]["content"])}


def answer(request: dict[str, Any]) -> str:
    """A valid answer: phrases from the message, or a fact from memory; a message can say in the stance of its choice."""
    found = blocks(request)
    message = found.get("message", "")
    if kind_of(request, None) == "classify":
        return groq_tools.classified(message)
    if kind_of(request, None) in ("tools", "rewrite"):
        return groq_tools.drafted(request)
    if (kind := kind_of(request, None)) in ("intent", "preflight", "reflect"):
        return _thought(kind, message)
    if '{"calls": [{"tool"' in request["messages"][0]["content"]:
        return _wished(message, found.get("plan", ""))
    if kind in ("understand", "formulate"):
        return json.dumps({"kind": "none", "about": [], "words": []} if kind == "understand" else {})
    if kind_of(request, None) == "router":
        if _GREETING.fullmatch(message):
            return json.dumps(
                {"thought_process": "-", "decision": "respond_directly", "key_phrases": [], "direct_response": "Hello!"}
            )
        phrases = [word for word in re.findall(r"\w+", message) if word.lower() not in _SMALL][:6]
        routed = {
            "decision": "query_memory",
            "key_phrases": [" ".join(phrases)] if phrases else [],
            "direct_response": None,
            "tier": "sonnet",
        }
        return json.dumps({"thought_process": "-", **routed})
    if kind_of(request, None) == "summarise":
        return json.dumps({"summary": f"In short: {found.get('history', '')[:300]}"})
    draft = found.get("draft", "")
    reply = (
        draft
        if draft not in ("", "None.", "There is nothing here.")
        else _fact(found.get("memory", "")) or f"You said: {message[:200]}"
    )
    asked = _STANCE.search(message)
    stance = asked[1] if asked else "curious_explorer"
    return json.dumps({"user_response": reply, "next_agent_directive": stance, "directive_reasoning": "scripted"})


def _thought(kind: str, message: str) -> str:
    """What a message is, where it can name its tier (`tier quality`); a look ahead; or a look back that finds nothing amiss."""
    if kind == "preflight":
        return json.dumps({"know": "The task.", "need": "The facts.", "approach": ["Look.", "Weigh."], "risk": "Old facts."})
    if kind == "reflect":
        return json.dumps({"score": 0.8, "answer": None})
    named = _TIER.search(message)
    tier = named[1] if named else "sonnet"
    return json.dumps({"tier": tier, "branch": "action", "persona": "none", "topic": False})


def _fact(memory: str) -> str | None:
    try:
        item = json.loads(memory.split("\n", 1)[0])
    except ValueError:
        return None
    return f"{item['title']}: {item['text'][:300]}" if isinstance(item, dict) and "text" in item else None


def _wished(message: str, tools: str) -> str:
    """A call of each tool that shares a telling word with a message that asks nothing."""
    said = {word for word in re.findall(r"[a-z]+", message.lower()) if word not in _SMALL}
    named = [json.loads(line)["tool"] for line in tools.splitlines() if line.startswith("{")]
    wanted = [
        name for name in named if said & set(re.findall(r"[a-z]{3,}", name.lower())) and not message.rstrip().endswith("?")
    ]
    figures = [number for number, word in enumerate(_NUMBERS) if word in said]
    return json.dumps({"calls": [{"tool": name, "arguments": {"figures": figures} if figures else {}} for name in wanted]})
