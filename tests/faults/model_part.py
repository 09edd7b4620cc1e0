"""The model's half of the table: each fault in each call of a turn, and the endpoint as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.faults.measure import BEFORE, Answer, Row, ask, cell, someone_who_knows
from tests.faults.model_faults import Expected, ModelFault, cells, expected
from tests.faults.stack import FaultStack
from tests.support.groq_server import Fault
from tests.support.people import Person
from tests.support.tcp_proxy import Mode

Said = Callable[[Row], None]
_LANES = 6
_ENDPOINT: tuple[tuple[Mode, str, int, tuple[str, ...]], ...] = (
    ("refuse", "nobody listens", 503, ()),
    ("reset", "every connection is reset", 503, ()),
    ("cut", "every connection is closed after 100 bytes", 503, ()),
    ("slow", "each piece comes five seconds late", 200, ("router",)),
)


async def model_part(stack: FaultStack, say: Said) -> None:
    """Measure all of it.

    Answers that are merely no good are tried side by side. Calls that fail are not: so many at once would open the
    breaker, which has a row of its own. The router and the final call have a model and a breaker each, so one of each kind
    goes at a time.
    """
    everything = list(cells())
    await _lanes(stack, say, [[one] for one in everything if one[0].kind != "away"], _LANES)
    away = [one for one in everything if one[0].kind == "away" and one[0].quick]
    await _lanes(stack, say, [[c for c in away if c[1].startswith(purpose)] for purpose in ("router", "final")], 2)
    slow = [one for one in everything if not one[0].quick]
    await _lanes(stack, say, [[one] for one in slow], len(slow))
    person = await someone_who_knows(stack.people)
    for mode, name, status, degraded in _ENDPOINT:
        say(await _endpoint(stack, person, mode, name, status, degraded))
    say(await _breaker(stack, person))


async def _lanes(stack: FaultStack, say: Said, work: Sequence[Sequence[tuple[ModelFault, str]]], lanes: int) -> None:
    waiting = list(work)

    async def lane() -> None:
        person = await someone_who_knows(stack.people)
        while waiting:
            for fault, call in waiting.pop(0):
                say(await model_cell(stack, person, fault, call))

    await asyncio.gather(*(lane() for _ in range(min(lanes, len(work)))))


async def model_cell(stack: FaultStack, person: Person, fault: ModelFault, call: str) -> Row:
    """One fault in one call."""

    async def broken(mark: str) -> None:
        for purpose, scripted in fault.script(call, about=mark):
            stack.model.fail(purpose, scripted)

    async def mend(mark: str) -> None:
        stack.model.forgive(mark)

    wanted = expected(fault, call)
    return await cell(person, stack.model, fault.name, call, broken, mend, lambda answer, calls: _judge(wanted, answer, calls))


def _judge(wanted: Expected, answer: Answer, calls: int) -> str:
    found = (answer.status, answer.body.get("code"), tuple(answer.body.get("degraded", ())), calls)
    if found == (wanted.status, wanted.code, wanted.degraded, wanted.calls):
        if wanted.status != 200:
            return "" if answer.retry_after else "a Retry-After"
        changed = answer.body["next_agent_directive"] != BEFORE
        return "" if changed is wanted.directive_changes else f"a {'new' if wanted.directive_changes else 'kept'} directive"
    return f"{wanted.status} {wanted.code or ''} {', '.join(wanted.degraded)} after {wanted.calls} calls"


async def _endpoint(stack: FaultStack, person: Person, mode: Mode, name: str, status: int, degraded: tuple[str, ...]) -> Row:
    link = stack.links["orchestrator to the model"]

    async def broken(mark: str) -> None:
        await link.be(mode)

    async def mend(mark: str) -> None:
        await link.be("pass")

    def judge(answer: Answer, calls: int) -> str:
        code = "model_unavailable" if status == 503 else None
        found = (answer.status, answer.body.get("code"), tuple(answer.body.get("degraded", ())))
        return "" if found == (status, code, degraded) else f"{status} {code or ''} {', '.join(degraded)}"

    return await cell(person, stack.model, name, "both", broken, mend, judge)


async def _breaker(stack: FaultStack, person: Person) -> Row:
    """Two turns fail, so that both breakers are open; the third one is measured."""

    async def broken(mark: str) -> None:
        stack.model.fail("any", Fault(status=500, times=10_000))
        for _ in range(2):
            await ask(person)

    async def mend(mark: str) -> None:
        stack.model.forgive("")

    def judge(answer: Answer, calls: int) -> str:
        found = (answer.status, answer.body.get("code"), calls, answer.seconds < 1)
        return "" if found == (503, "model_unavailable", 0, True) else "503 model_unavailable at once, no call"

    return await cell(person, stack.model, "500 again and again: the breaker is open", "both", broken, mend, judge)
