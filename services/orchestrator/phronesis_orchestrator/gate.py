"""The order and the limits of an analyst's tool calls, whatever the model has in mind (NC-018, NC-021, N-050, N-051)."""

from __future__ import annotations

from dataclasses import dataclass

from phronesis_contracts import Message, Principal
from phronesis_contracts.cypher import READ_CYPHER_TOOL, ReadCypher
from phronesis_contracts.instructions import RETRIEVE_INSTRUCTIONS_TOOL, RetrieveInstructions
from phronesis_contracts.scoped_memory import RECALL_MEMORY_TOOL

from .inquiry import ToolCall
from .toolbox import BadArguments, Toolbox

MAX_ROUNDS = 8
"""Rounds of one inquiry, the answer counted in."""
MAX_TURN_CALLS = 20
"""Tool calls of one turn that are made."""
MAX_ELEMENTS = 32
"""Elements of one call: half of the library is no selection any more (N-048)."""
MAX_REFUSALS = 3
"""Refused reads in a row after which no more is read: the first, and two tries to repair it."""


class NotAdmitted(Exception):
    """A call that is not made; the model is told why."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


@dataclass(frozen=True)
class Admitted:
    """A call that is to be made."""

    call: ToolCall
    request: Message


class Gate:
    """Admits the calls of one turn, in the order in which the model wrote them.

    Args:
        box: the tools offered.
        who: the caller.
    """

    def __init__(self, box: Toolbox, who: Principal) -> None:
        self._box = box
        self._who = who
        self._seen: set[tuple[str, str]] = set()
        self._remembered = False
        self._asked: set[str] = set()
        """Kinds of instructions that were asked for and not refused: `mode`, `elements`."""
        self._loaded = False
        self._refusals = 0
        self.made = 0
        """Calls that were admitted."""

    def admit(self, call: ToolCall) -> Admitted:
        """A call with its checked arguments. Raises `NotAdmitted`."""
        if call.name not in self._box.tools:
            raise NotAdmitted("unknown_tool", f"the tools are: {', '.join(self._box.tools)}")
        if self.made >= MAX_TURN_CALLS:
            raise NotAdmitted("too_many_calls", "no more calls are made for this message; answer with what there is")
        try:
            request = self._box.arguments(call.name, call.arguments, self._who)
        except BadArguments as error:
            raise NotAdmitted("bad_arguments", str(error)[:500]) from error
        known = (call.name, request.model_dump_json())
        if known in self._seen:
            raise NotAdmitted("repeated", "this very call was made before; its answer stands above and is to be trusted")
        self._in_order(call.name, request)
        self._seen.add(known)
        self.made += 1
        return Admitted(call, request)

    def _in_order(self, name: str, request: Message) -> None:
        if name == RECALL_MEMORY_TOOL.name:
            self._remembered = True
        elif name == RETRIEVE_INSTRUCTIONS_TOOL.name and isinstance(request, RetrieveInstructions):
            self._instructions("mode" if request.mode else "elements")
            if len(request.elements or ()) > MAX_ELEMENTS:
                raise NotAdmitted("too_many_elements", f"ask for at most {MAX_ELEMENTS}: those that the question needs")
            self._asked.add("mode" if request.mode else "elements")
        elif name == READ_CYPHER_TOOL.name:
            if not self._loaded:
                raise NotAdmitted("out_of_order", "step 2 comes first: load the instructions of the mode, then read")
            if self._refusals >= MAX_REFUSALS:
                raise NotAdmitted("not_readable", "this could not be repaired in two tries; say what could not be found out")

    def _instructions(self, kind: str) -> None:
        if not self._remembered:
            raise NotAdmitted("out_of_order", "step 0 comes first: recall_memory")
        if kind in self._asked:
            raise NotAdmitted("once_only", f"instructions by {kind} are loaded once in a turn; they stand above")
        if kind == "elements" and "mode" not in self._asked:
            raise NotAdmitted("out_of_order", "load the bundle of the mode first, then the elements that it says are needed")

    def settle(self, admitted: Admitted, refused: bool, failed: bool) -> None:
        """Note what came of a call.

        Args:
            admitted: the call.
            refused: whether its owner found it wrong, so that a changed one may pass.
            failed: whether it gave nothing, for whatever reason.
        """
        request = admitted.request
        if isinstance(request, RetrieveInstructions):
            self._loaded = self._loaded or not failed
            if failed:
                self._asked.discard("mode" if request.mode else "elements")
        elif isinstance(request, ReadCypher):
            self._refusals = self._refusals + 1 if refused else self._refusals if failed else 0
        if failed and not refused:
            self._seen.discard((admitted.call.name, request.model_dump_json()))  # it may be tried once more
