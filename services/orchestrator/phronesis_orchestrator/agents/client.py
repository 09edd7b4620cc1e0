"""Turns for a client program: its own tools, which it runs itself, and the form that it asks the answer in.

None of what the client adds is the user's word. The agent's own tools are not offered beside the client's, so that nothing
that a client's tool gives can make one run; and what protects an agent's answer runs as it does without a client.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import UUID

from phronesis_contracts import BadRequest, ModelUnavailable, ServiceError, TooLarge
from phronesis_contracts.instructions import AgentProfile
from phronesis_contracts.memory import AugmentedMemoryContext
from phronesis_contracts.orchestrator import (
    MAX_CLIENT_BYTES,
    AnswerForm,
    AnswerUnfit,
    ClientRequest,
    ClientToolCall,
    ModelRequired,
)

from ..models.parsing import MAX_REPLY, make_fault, make_storable, parse_draft, read_object
from ..models.reasoner import ClientServer, Draft, Fault, FormedAnswer, Move, Reasoner, ToolCall, TurnContext
from ..outside_tools.schemas import UnfitSchema, check_schema, find_fault
from ..turns.execution import TurnRun
from .counsel.tools import STAGE, TurnTools, describe_hits, find_broken_rules, paragraphs
from .loops import LoopAnswer
from .presentation import sanitize_answer
from .text import key_phrases
from .tools import uses_allow_list

log = logging.getLogger(__name__)

Loop = Callable[[TurnRun, Reasoner, TurnContext], Awaitable[LoopAnswer]]
_NO_MODEL = "no language model is set up here, and {} takes one"
_TOOLS, _FORM = "calling a client's tools", "an answer in a form of the client's"
_FIELDS = {"client": "tools", "form": "response_format"}
"""The prompt that each needs, and the part of a request that asks for it."""


def check_client_request(client: ClientRequest, agent: AgentProfile, reasoner: Reasoner) -> None:
    """Hold what a client adds to a message to what can be done here, before the turn is accepted.

    Raises:
        BadRequest: a schema or a call is not usable.
        TooLarge: it is too much.
        ModelRequired: no model can do it.
    """
    if len(client.model_dump_json().encode()) > MAX_CLIENT_BYTES:
        raise TooLarge(f"tools, their results and instructions have {MAX_CLIENT_BYTES} bytes at most", field="tools")
    names = [tool.name for tool in client.tools]
    for at, tool in enumerate(client.tools):
        if tool.parameters:
            _check_schema(tool.parameters, f"tools.{at}.function.parameters")
    if len(set(names)) != len(names):
        raise BadRequest("two tools have one name", field="tools")
    if client.tool_choice not in ("auto", "none", "required", "call") or (client.tool_choice == "call") != bool(client.tool):
        raise BadRequest("the choice is auto, none, required, or one tool by its name", field="tool_choice")
    if client.tool is not None and client.tool not in names:
        raise BadRequest("there is no such tool among the tools", field="tool_choice")
    if client.tool_choice in ("required", "call") and not names:
        raise BadRequest("there are no tools to call", field="tool_choice")
    if client.form is not None and client.form.schema_ is not None:
        _check_schema(client.form.schema_, "response_format.json_schema.schema")
    check_ability(client, agent, reasoner)


def check_ability(client: ClientRequest, agent: AgentProfile, reasoner: Reasoner) -> None:
    """Raise `ModelRequired` where the model at hand cannot do what a client asks for, or there is none."""
    for prompt, wanted, what in (("client", client.offers or client.steps, _TOOLS), ("form", client.form, _FORM)):
        if not wanted:
            continue
        if not isinstance(reasoner, ClientServer):
            raise ModelRequired(_NO_MODEL.format(what), field=_FIELDS[prompt])
        if prompt not in agent.prompts:
            raise ModelRequired(f"the instructions of {agent.agent} have no prompt for {what}", field=_FIELDS[prompt])
    if client.offers and isinstance(reasoner, ClientServer) and reasoner.refuses_tools(agent):
        raise ModelRequired("the language model that is set up here takes no tools", field="tools")


def _check_schema(schema: dict[str, object], field: str) -> None:
    try:
        check_schema(schema)
    except UnfitSchema as error:
        raise BadRequest(f"this schema cannot be used: {error}", field=field) from error


async def serve_client(running: TurnRun, reasoner: Reasoner, turn: TurnContext, loop: Loop) -> LoopAnswer:
    """Answer for a client program: by calls of its tools, or by the agent's loop, and in the form that is asked for.

    Raises:
        AnswerUnfit: the model does not call what has to be called, or does not keep to the form.
        ServiceError: the model failed; rules take the place of a model in the loop alone.
    """
    client, agent = turn.client, turn.agent
    assert client is not None, "the turn has a client"
    if not (client.offers or client.steps or client.form):
        return await loop(running, reasoner, turn)
    if agent is None:
        raise ModelUnavailable("the agent's instructions could not be had, and a client's tools or form need them")
    check_ability(client, agent, reasoner)
    assert isinstance(reasoner, ClientServer), "that was looked at"
    answer = await _call(running, reasoner, turn, client, agent) if client.offers or client.steps else None
    if answer is None:
        answer = await loop(running, reasoner, turn)
    if client.form is None or answer.tool_calls:
        return answer
    return replace(answer, text=await _put(running, reasoner, turn, client.form, answer.text))


async def _call(
    running: TurnRun, reasoner: ClientServer, turn: TurnContext, client: ClientRequest, agent: AgentProfile
) -> LoopAnswer | None:
    """Calls of the client's tools, or the answer from what they gave; `None` where none is called and nothing came yet."""

    def parse(said: str, calls: tuple[ToolCall, ...]) -> Move | Fault:
        return parse_move(client, said, calls)

    with running.phase("client tools"):
        memory = await _remember(running, turn)
        steps = running.steps
        try:
            made = await steps.made("client", Move, lambda: reasoner.serve_client(turn, client, memory, parse))
            if made.value is None:
                fault = made.fault
                made = await steps.made(
                    "client.repair", Move, lambda: reasoner.serve_client(turn, client, memory, parse, fault)
                )
        except ModelUnavailable:
            check_ability(client, agent, reasoner)  # what was found out by this call
            raise
    move = made.value
    if move is None:
        raise AnswerUnfit(f"the model did not answer as the tools ask: {made.fault.wrong if made.fault else 'no reason'}"[:500])
    if move.calls:
        await running.show("tools", names=[call.name for call in move.calls])
        return LoopAnswer(move.text, turn.directive, "", memory, tool_calls=_with_ids(running.claim.turn_id, move.calls))
    return LoopAnswer(await _guarded(running, turn, agent, move.text), turn.directive, "", memory) if client.steps else None


async def _guarded(running: TurnRun, turn: TurnContext, agent: AgentProfile, text: str) -> str:
    """An answer from results of a client's tools, as careful as the agent's own: inert, and with the rules it has to name."""
    if not uses_allow_list(agent):
        return sanitize_answer(text)
    desk = TurnTools(running, agent)
    hits = await find_broken_rules(running, desk, turn.user_text or turn.final_input) if STAGE in agent.stages else ()
    return paragraphs(sanitize_answer(desk.record.kept(text)), describe_hits(hits))


async def _remember(running: TurnRun, turn: TurnContext) -> AugmentedMemoryContext | None:
    try:
        memory = await running.retrieve(key_phrases(turn.final_input, turn.history), turn.focus.to_forget)
    except ServiceError as error:
        log.warning("retrieval failed: %s", error.code)
        running.degrade("memory")
        return None
    for part in memory.degraded:
        running.degrade(part)
    return memory


def parse_move(client: ClientRequest, said: str, calls: tuple[ToolCall, ...]) -> Move | Fault:
    """What a model did with a client's tools, or what is wrong with it."""
    if calls and client.offers:
        kept = calls if client.parallel else calls[:1]
        shown = json.dumps([call.model_dump() for call in kept])
        for call in kept:
            if wrong := _fault_of_call(client, call):
                return make_fault(shown, wrong)
        return Move(text=make_storable(said[:MAX_REPLY]), calls=kept)
    if client.offers and client.tool_choice in ("required", "call"):
        return make_fault(said, "A tool has to be called.")
    if not client.steps:
        return Move()
    found = parse_draft(said)
    if isinstance(found, Draft):
        return Move(text=found.answer)
    text = str(make_storable(said[:MAX_REPLY])).strip()
    return found if not text or text[0] in "{[" else Move(text=text)


def _fault_of_call(client: ClientRequest, call: ToolCall) -> str | None:
    tool = next((one for one in client.tools if one.name == call.name), None)
    if tool is None or (client.tool is not None and call.name != client.tool):
        return f"There is no tool {call.name[:64]!r} to call."
    arguments = read_object(call.arguments or "{}")
    if isinstance(arguments, Fault):
        return f"The arguments of {tool.name} are no JSON object."
    wrong = find_fault(tool.parameters, arguments) if tool.strict and tool.parameters else None
    return f"The arguments of {tool.name} do not fit its schema: {wrong}" if wrong else None


def _with_ids(turn_id: str, calls: tuple[ToolCall, ...]) -> tuple[ClientToolCall, ...]:
    """The calls with ids that name the turn, so that whoever sends results can be told which turn they belong to."""
    turn = UUID(turn_id).hex
    return tuple(
        ClientToolCall(id=f"call_{turn}_{at}", name=call.name, arguments=call.arguments or "{}")
        for at, call in enumerate(calls, 1)
    )


async def _put(running: TurnRun, reasoner: ClientServer, turn: TurnContext, form: AnswerForm, draft: str) -> str:
    """An answer in a client's form: one JSON object."""

    def parse(said: str, calls: tuple[ToolCall, ...]) -> FormedAnswer | Fault:
        return parse_formed(form, said)

    with running.phase("client form"):
        made = await running.steps.made("form", FormedAnswer, lambda: reasoner.form(turn, form, draft, parse))
        if made.value is None:
            fault = made.fault
            made = await running.steps.made("form.repair", FormedAnswer, lambda: reasoner.form(turn, form, draft, parse, fault))
    if made.value is None:
        raise AnswerUnfit(f"the model did not keep to the form: {made.fault.wrong if made.fault else 'no reason'}"[:500])
    return made.value.text


def parse_formed(form: AnswerForm, said: str) -> FormedAnswer | Fault:
    """The object of a client's form that a model wrote, or what is wrong with it."""
    found = read_object(said)
    if isinstance(found, Fault):
        return found
    if form.schema_ is not None and (wrong := find_fault(form.schema_, found)):
        return make_fault(said, f"The object does not fit the schema: {wrong}")
    return FormedAnswer(text=json.dumps(found, ensure_ascii=False))
