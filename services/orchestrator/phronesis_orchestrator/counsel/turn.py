"""One turn of an agent that has an allow-list: with a language model where there is one, by rules where there is none."""

from __future__ import annotations

from ..cognition.thinking import decided, prepared
from ..inquiry import Inquirer
from ..reasoner import Reasoner, TurnContext
from ..running import Running
from .desk import Desk
from .plain import plainly
from .record import Record
from .work import Work

_APOLOGY = "I am sorry, I could not put an answer together. Please ask again."
_NO_TOOLS = "Your role may use none of this agent's tools, so it can look nothing up for you."


async def counsel(running: Running, reasoner: Reasoner, turn: TurnContext) -> tuple[str, Record]:
    """The reply, and the nodes that were seen for it.

    Args:
        running: the turn.
        reasoner: what thinks; one that cannot work with tools leaves the question to rules.
        turn: its context, with the agent's profile.

    Raises:
        ServiceError: what the answer cannot do without failed.
    """
    agent = turn.agent
    assert agent is not None, "the tools are those of its list"
    desk = Desk(running, agent)
    await desk.reach_outside()
    if not desk.tools:
        return _NO_TOOLS, desk.record
    turn = await decided(running, reasoner, turn)
    if not isinstance(reasoner, Inquirer):
        return await plainly(running, turn, desk), desk.record
    turn = await prepared(running, reasoner, turn, tuple(desk.tools.values()))
    answer = await Work(running, reasoner, turn, desk).answer()
    if answer is None:
        running.degrade("final")
        answer = agent.phrases.get("apology") or _APOLOGY
    return answer, desk.record
