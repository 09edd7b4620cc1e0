"""Asking the analyst over a twin in memory."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

from phronesis_contracts import Principal
from phronesis_contracts.answers import Analysis
from phronesis_contracts.orchestrator import Directive
from phronesis_orchestrator.agents.analyst.answer import analyse
from phronesis_orchestrator.conversations.history import PastMessage
from phronesis_orchestrator.models.reasoner import TurnContext
from phronesis_orchestrator.turns.execution import TurnRun

from .twin import MemoryTwin


@dataclass
class Asker:
    """Somebody who asks one twin."""

    twin: MemoryTwin

    async def ask(self, text: str, *before: str) -> Analysis:
        """The analyst's answer, after earlier messages of the user."""
        past = tuple(PastMessage(role, said) for one in before for role, said in (("user", one), ("assistant", "Noted.")))
        turn = TurnContext(
            agent=None, profile={}, history=past, directive=Directive.FOCUSED_ANALYST, final_input=text, user_text=text
        )
        who = Principal(tenant="t", user=f"u-{uuid4().hex[:8]}")
        running: Any = SimpleNamespace(neighbours=self.twin, claim=SimpleNamespace(who=who))
        return await analyse(cast(TurnRun, running), turn)
