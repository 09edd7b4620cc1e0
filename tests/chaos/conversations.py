"""Conversations after a run: their turns in order, their messages without a gap, and the directive of the last turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from phronesis_contracts.orchestrator import Directive

from .traffic import Sent

_TURNS = """
SELECT t.conversation_id, t.id, t.reply, d.directive, j.result FROM orchestrator.turns t
LEFT JOIN orchestrator.directives d ON d.turn_id = t.id
LEFT JOIN orchestrator.journal j ON j.turn_id = t.id AND j.step = 'compose'
WHERE t.conversation_id = ANY($1) AND t.status = 'completed' ORDER BY t.sequence
"""
_SAID = "SELECT conversation_id, seq, turn_id, role FROM orchestrator.messages WHERE conversation_id = ANY($1) ORDER BY seq"
_CONVERSATIONS = "SELECT id, directive, next_message FROM orchestrator.conversations WHERE id = ANY($1)"


async def disorders(connection: asyncpg.Connection, accepted: Sequence[Sent]) -> list[str]:
    """What is not as it should be in the conversations of these turns, one line each."""
    ids = list({UUID(one.conversation_id) for one in accepted if one.conversation_id})
    stances = {str(one.turn_id): one.wish.stance for one in accepted}
    turns, said = await connection.fetch(_TURNS, ids), await connection.fetch(_SAID, ids)
    wrong: list[str] = []
    for row in await connection.fetch(_CONVERSATIONS, ids):
        ended = [turn for turn in turns if turn["conversation_id"] == row["id"]]
        lines = [line for line in said if line["conversation_id"] == row["id"]]
        wrong += [f"conversation {row['id']}: {fault}" for fault in _faults(row, ended, lines, stances)]
    return wrong


def _faults(row: Any, ended: list[Any], lines: list[Any], stances: dict[str, Directive | None]) -> Iterator[str]:
    spoken = [(turn["id"], role) for turn in ended for role in ("user", "assistant")]
    if [(line["turn_id"], line["role"]) for line in lines] != spoken:
        yield "its messages are not those of its completed turns, in their order"
    if [line["seq"] for line in lines] != list(range(1, len(lines) + 1)) or row["next_message"] != len(lines) + 1:
        yield "the places of its messages have gaps"
    last = ended[-1]["directive"] if ended else Directive.SUPPORTIVE_COMPANION
    if row["directive"] != last:
        yield f"its directive is {row['directive']}, and its last turn's {last}"
    for turn in ended:
        yield from _unlike(turn, stances.get(str(turn["id"])))


def _unlike(turn: Any, stance: Directive | None) -> Iterator[str]:
    """Where the reply, the history of directives, the journal and the model's choice do not agree on a turn's directive."""
    composed = ((turn["result"] or {}).get("value") or {}).get("next_agent_directive")
    reply = turn["reply"]
    by_model = composed and reply["reasoner"] != "extractive"
    wanted = {turn["directive"], reply["next_agent_directive"]} | ({composed} if composed else set())
    if stance and by_model:
        wanted.add(str(stance))
    if len(wanted) != 1:
        yield f"turn {turn['id']} has the directives {sorted(map(str, wanted))}"
