"""Which answers a record holds, and which it leaves with their owner, who may be told to forget them."""

from __future__ import annotations

from typing import Any

from phronesis_bus import audited
from phronesis_contracts import Message, Principal, Risk, Rpc
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.facts import RecalledFacts
from phronesis_contracts.memory import AugmentedMemoryContext, Profile, Recalled
from phronesis_contracts.scoped_memory import RecalledMemories
from phronesis_contracts.tools import Tool

from .record import Item

_OWNERS = ("memory", "media")
"""Services whose texts are people's own: memories, profiles, attachments."""
_NAMING = ("scope", "key", "ids", "external_id", "kind")
"""Arguments of a write that say which memory it is about."""
_OF_THE_GRAPH = "memory.v1.constitution."
"""Searches of nodes that the graph owns."""
_BY_SUBJECT: dict[str, Tool[Any, Any]] = {tool.rpc.subject: tool for tool in reversed(TOOLS.values())}


def tool_of(rpc: Rpc[Any, Any]) -> Tool[Any, Any] | None:
    """The tool that a contract is, if it is one; of several names the first."""
    return _BY_SUBJECT.get(rpc.subject)


def arguments_of(who: Principal, rpc: Rpc[Any, Any], request: Message) -> dict[str, Any]:
    """The arguments of a tool call as a trace shows them: secrets masked, long texts cut, and of a memory that is written
    its name alone, since it may be forgotten.
    """
    given = request.model_dump(mode="json", exclude_none=True)
    tool = tool_of(rpc)
    if rpc.service in _OWNERS and (tool is None or tool.risk > Risk.READ):
        given = {name: value for name, value in given.items() if name in _NAMING}
    return audited(who, rpc.subject, given).arguments


def is_held(rpc: Rpc[Any, Any], answer: Message) -> bool:
    """Whether its owner alone keeps the text of an answer. An answer without any is recorded as it is."""
    if rpc.service not in _OWNERS or rpc.subject.startswith(_OF_THE_GRAPH):
        return False
    tool = tool_of(rpc)
    if tool is not None and tool.risk > Risk.READ:
        return False  # the receipt of a write; it must never be asked for again
    return not _is_empty(answer)


def _is_empty(answer: Message) -> bool:
    match answer:
        case AugmentedMemoryContext():
            return not answer.memory_units and not answer.concepts
        case RecalledMemories():
            return not answer.snippets
        case Recalled():
            return not answer.items
        case RecalledFacts():
            return not answer.facts
        case Profile():
            return not answer.profile
    return False


def items_of(answer: Message) -> tuple[Item, ...]:
    """The memories in an answer, best first."""
    match answer:
        case AugmentedMemoryContext():
            found = (*answer.memory_units, *answer.concepts)
            return tuple(Item(id=one.id, kind=one.kind, score=one.score) for one in found)
        case RecalledMemories():
            return tuple(Item(id=f"{answer.scope}:{one.key}", kind="scoped", score=one.score) for one in answer.snippets)
        case Recalled():
            return tuple(Item(id=one.id, kind=one.kind, score=one.score) for one in answer.items)
        case RecalledFacts():
            return tuple(Item(id=one.fact.id, kind="fact", score=one.score) for one in answer.facts)
    return ()


def restored(answer: Message, items: tuple[Item, ...]) -> tuple[Message, tuple[str, ...]]:
    """An answer that was asked for again, with the recorded memories alone, in their order and with their scores.

    Returns:
        The answer, and the ids that it no longer holds.
    """
    ranks = {item.id: (at, item.score or 0.0) for at, item in enumerate(items)}
    match answer:
        case AugmentedMemoryContext():
            parts = {name: _ranked(getattr(answer, name), ranks) for name in ("memory_units", "concepts")}
            there = {one.id for part in parts.values() for one in part}
            again: Message = answer.model_copy(update=parts)
        case RecalledMemories():
            keys = {id.partition(":")[2]: rank for id, rank in ranks.items()}
            snippets = _ranked(answer.snippets, keys, name="key")
            there = {f"{answer.scope}:{one.key}" for one in snippets}
            again = answer.model_copy(update={"snippets": snippets})
        case Recalled():
            listed = _ranked(answer.items, ranks)
            there, again = {one.id for one in listed}, answer.model_copy(update={"items": listed})
        case RecalledFacts():
            facts = tuple(sorted((one for one in answer.facts if one.fact.id in ranks), key=lambda one: ranks[one.fact.id][0]))
            there, again = {one.fact.id for one in facts}, answer.model_copy(update={"facts": facts})
        case _:
            return answer, ()
    return again, tuple(id for id in ranks if id not in there)


def _ranked(found: tuple[Any, ...], ranks: dict[str, tuple[int, float]], name: str = "id") -> tuple[Any, ...]:
    known = sorted((one for one in found if getattr(one, name) in ranks), key=lambda one: ranks[getattr(one, name)][0])
    return tuple(one.model_copy(update={"score": ranks[getattr(one, name)][1]}) for one in known)
