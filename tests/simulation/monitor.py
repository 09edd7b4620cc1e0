"""What has to hold of turns: looked at with every commit, every call and every message, and once more at the end."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from phronesis_contracts import KeyReused
from phronesis_contracts.orchestrator import TURN_ENDED, TurnEndedNews, TurnProgress
from phronesis_orchestrator.turns.turn import Claim

from .loop import Process
from .postgres import OPEN, Change, Key, Row

if TYPE_CHECKING:
    from .world import World

_STEPS = {
    ("queued", "running"),
    ("running", "running"),
    ("running", "queued"),
    ("running", "waiting"),
    ("waiting", "queued"),
    ("running", "completed"),
    ("running", "failed"),
    ("running", "parked"),
    *((status, "cancelled") for status in OPEN),
}
"""How a turn's status may change."""


class Monitor:
    """Watches one run. The first thing that may not be is kept in `violation`, and ends it."""

    def __init__(self, world: World, idle_claims: int, lease: float) -> None:
        self._world, self._idle_claims, self._lease = world, idle_claims, timedelta(seconds=lease)
        self.violation: str | None = None
        self._keys: dict[tuple[str, str, str], UUID] = {}
        self._idle: dict[UUID, tuple[int, int]] = {}
        """Fewest and most claims in a row that added nothing to a turn's journal."""
        self._results: dict[tuple[str, str], int] = {}
        """Fence under which the result of each step was written."""
        self._once = Counter[tuple[str, str]]()
        self._effects: dict[tuple[str, str], int] = {}
        self._news: dict[str, str] = {}
        """The id of the news of each turn's end, as it was heard."""
        self._followed: set[str] = set()
        self._written: dict[UUID, int] = {}
        """The outbox row for each turn's end."""

    def break_off(self, violation: str) -> None:
        if self.violation is None:
            self.violation = violation
            self._world.tell("violation", violation)
            self._world.loop.halted = True

    def _hold(self, holds: bool, otherwise: str, *about: object) -> None:
        if not holds:
            self.break_off(f"{otherwise} ({', '.join(map(str, about))})")

    @property
    def _turns(self) -> dict[Key, Row]:
        return self._world.database.tables.setdefault("turns", {})

    # With each commit.

    def check_commit(self, by: object, changes: list[Change]) -> None:
        """Look at what a process has committed to the database of turns."""
        for table, _, before, after in changes:
            if table == "journal" and after is not None:
                self._check_journal(before, after)
        for table, _, before, after in changes:
            if table == "turns" and after is not None:
                if before is not None and before["status"] == "running" and before["fence"] == after["fence"]:
                    mine = isinstance(by, Process) and by.name == before["worker"]
                    self._hold(mine, "a running turn was changed by another than its holder", after["id"], by, before["worker"])
                self._check_turn(before, after, changes)
            elif table == "outbox" and after is None and before is not None:
                id = f"{before['tenant']}.orchestrator.{before['id']}"
                self._hold(self._world.broker.holds("EVT", id), "news left the outbox and was never stored", id)

    def _check_journal(self, before: Row | None, after: Row) -> None:
        turn, step = after["turn_id"], after["step"]
        if before is not None and before["result"] is not None:
            self._hold(before["result"] == after["result"], "a journalled result was changed", turn, step)
        elif after["result"] is not None:
            row = self._turns[(turn,)]
            held = row["status"] == "running" and row["fence"] == after["fence"]
            self._hold(held, "a result was written without the claim", turn, step)
            self._results[str(turn), step] = after["fence"]
            self._idle[turn] = (0, 0)

    def _check_turn(self, before: Row | None, after: Row, changes: list[Change]) -> None:
        id, status = after["id"], after["status"]
        if before is None:
            self._check_accepted(after)
            return
        if before["status"] != status or before["fence"] != after["fence"]:
            self._world.tell(f"turn {status}", str(id)[:8], after["fence"], after["worker"] or "")
        self._hold(before["status"] in OPEN, "an ended turn was changed", id, before["status"], status)
        same = before["status"] == status and status != "running"
        self._hold(same or (before["status"], status) in _STEPS, "no way for a turn", id, before["status"], status)
        raised = after["fence"] - before["fence"]
        claimed = status == "running" and raised == 1
        needs = int(claimed or status == "cancelled" or (before["status"], status) == ("queued", "running"))
        self._hold(raised == needs, "the fence was not raised as it has to be", id, before["status"], status, raised)
        if claimed:
            self._check_claim(before, after)
        few, most = self._idle.get(id, (0, 0))
        if (before["status"], status) == ("running", "queued") and before["worker"] in self._world.stopped:
            # In order it does not count; one that failed at the same moment does.
            few -= 1
            self._idle[id] = few, most
        if before["status"] == "running" and status == "queued" and after["wait"] is not None:
            self._idle[id] = few, most = max(few - 1, 0), max(most - 1, 0)  # put back for what does not answer
        if status == "waiting":
            self._idle[id] = few, most = (0, 0)
        self._hold(few <= after["idle_claims"] <= most, "idle claims are miscounted", id, after["idle_claims"], few, most)
        if status == "parked":
            self._hold(most > self._idle_claims, "a turn was parked too early", id, most)
        if status not in OPEN:
            self._check_ended(before, after, changes)

    def _check_accepted(self, row: Row) -> None:
        key = (row["tenant"], row["user_id"], row["request"]["idempotency_key"])
        self._hold(self._keys.setdefault(key, row["id"]) == row["id"], "one key made two turns", *key)
        others = [other["sequence"] for other in self._of_conversation(row)]
        self._hold(all(row["sequence"] > other for other in others), "a turn took a place behind its back", row["id"], others)
        self._world.tell(f"turn {row['status']}", str(row["id"])[:8], row["sequence"])
        held = int(row["status"] == "running")
        self._hold(
            (row["fence"], row["attempts"], row["idle_claims"]) == (held, held, held), "a new turn is miscounted", row["id"]
        )
        self._idle[row["id"]] = held, held
        if held:
            self._check_place(row)

    def _check_claim(self, before: Row, after: Row) -> None:
        now = after["lease_until"] - self._lease
        free = before["lease_until"] is None or before["lease_until"] < now
        self._hold(free, "a turn was claimed under a lease that had not run out", after["id"])
        self._check_place(after)
        few, most = self._idle.get(after["id"], (0, 0))
        self._idle[after["id"]] = few + 1, most + 1

    def _check_place(self, after: Row) -> None:
        """A claimed turn is the first open one of its conversation, and runs there alone."""
        for other in self._of_conversation(after):
            self._hold(other["status"] != "running", "two turns of a conversation run at once", after["id"], other["id"])
        self._check_first(after, "claimed")

    def _check_first(self, row: Row, what: str) -> None:
        for other in self._of_conversation(row):
            ahead = other["sequence"] < row["sequence"] and other["status"] in ("queued", "running")
            self._hold(not ahead, f"a turn was {what} before an earlier one of its conversation", row["id"], other["id"])

    def _of_conversation(self, row: Row) -> list[Row]:
        return [
            other
            for other in self._turns.values()
            if other["conversation_id"] == row["conversation_id"] and other["id"] != row["id"]
        ]

    def _check_ended(self, before: Row, after: Row, changes: list[Change]) -> None:
        id, status = after["id"], after["status"]
        if status != "cancelled":
            self._check_first(after, "ended")
            self._hold(before["lease_until"] is not None, "a turn without a lease ended", id)
        subject = TURN_ENDED.on(after["tenant"])
        news = [row for table, _, _, row in changes if table == "outbox" and row is not None and row["subject"] == subject]
        self._hold(len(news) == 1, "an end without its one piece of news", id, len(news))
        if news:
            self._hold(json.loads(news[0]["body"])["turn_id"] == str(id), "news of another turn", id)
            self._hold(self._written.setdefault(id, news[0]["id"]) == news[0]["id"], "a turn ended twice", id)
        said = [row for row in self._world.database.tables.get("messages", {}).values() if row["turn_id"] == id]
        self._hold(len(said) == (2 if status == "completed" else 0), "an end with other messages than its own", id, len(said))

    def check_effects(self, by: object, changes: list[Change]) -> None:
        for table, _, _, row in changes:
            if table == "effects" and row is not None:
                key = (row["tenant"], row["key"])
                self._hold(key not in self._effects, "a write took effect twice", *key)
                self._effects[key] = row["id"]

    # With each call, and each message.

    def begin_call(self, claim: Claim, step: str, *, once: bool = False) -> None:
        """A call is about to be made for a step of a turn."""
        place = (claim.turn_id, step)
        self._world.tell("call", claim.turn_id[:8], step, claim.fence)
        intended = self._world.database.tables.get("journal", {}).get((UUID(claim.turn_id), step))
        # A model's call is simply made again: what is not written down ahead of it, no kill can harm.
        self._hold(intended is not None or step.startswith("m"), "a call without an intent", *place)
        # Whoever lost its claim between its intent and the call may come late; an owner knows its write by the key.
        self._hold(claim.fence < self._results.get(place, claim.fence + 1), "a journalled call is made again", *place)
        if once:
            self._once[place] += 1
            self._hold(self._once[place] == 1, "a call that may be made once was made again", *place)

    def hear_intake(self, line: TurnProgress) -> None:
        found = (UUID(line.turn_id),) in self._turns
        if line.kind == "accepted":
            self._hold(found, "accepted, and no row is committed", line.turn_id)
        elif line.problem is not None:
            reused = line.problem.code == KeyReused.code
            self._hold(reused and found, "a good message was refused", line.turn_id, line.problem.code)

    def check_news(self, id: str, news: TurnEndedNews) -> None:
        """The news of an end has come to its follower."""
        row = self._turns.get((UUID(news.turn_id),))
        self._hold(row is not None and row["status"] == news.status, "an end was announced that is not so", news.turn_id)
        self._hold(self._news.setdefault(news.turn_id, id) == id, "an end was announced twice", news.turn_id)

    def hear_end(self, news: TurnEndedNews) -> None:
        """The follower has done with it what it does."""
        self._followed.add(news.turn_id)

    # At the end.

    def settled(self) -> bool:
        """Whether all turns have ended, and everybody knows."""
        ended = all(row["status"] not in OPEN for row in self._turns.values())
        return ended and not self._world.database.tables.get("outbox") and not self._world.broker.unacknowledged

    def unended(self) -> str:
        """What keeps a run from its end."""
        open_turns = [f"{row['id']} {row['status']}" for row in self._turns.values() if row["status"] in OPEN]
        unsent = len(self._world.database.tables.get("outbox", {}))
        return f"open: {open_turns}, unsent: {unsent}, unacknowledged: {self._world.broker.unacknowledged}"

    def check_end(self) -> None:
        for submitted in self._world.clients.submitted.values():
            if submitted.answer is not None and submitted.answer.kind == "accepted":
                self._hold((UUID(submitted.id),) in self._turns, "an accepted turn is lost", submitted.id)
        for row in self._turns.values():
            self._hold(str(row["id"]) in self._followed, "nobody followed an end", row["id"])
        self._hold(not self._world.broker.stored["PARKED"], "a message was parked")
        numbers = defaultdict[Any, list[int]](list)
        for message in self._world.database.tables.get("messages", {}).values():
            numbers[message["conversation_id"]].append(message["seq"])
        for conversation, found in numbers.items():
            self._hold(sorted(found) == list(range(1, len(found) + 1)), "a conversation has gaps", conversation, found)
        for step in self._world.database.tables.get("journal", {}).values():
            given = step["result"]
            if given is not None and step["step"][0] in "wa" and "answer" in given:
                effect = self._effects.get((step["tenant"], f"{step['turn_id']}/{step['step']}"))
                self._hold(
                    effect == given["answer"]["id"], "a write that was answered is not there", step["turn_id"], step["step"]
                )
