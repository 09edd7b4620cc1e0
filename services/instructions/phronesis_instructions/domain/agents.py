"""What an agent's content is."""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from phronesis_contracts import Message, Token
from phronesis_contracts.orchestrator import Directive

from .allowing import PURPOSE, unknown

_PROMPTS = {
    "router": frozenset({"router", "final", "repair"}),
    "quick": frozenset({"classify", "repair"}),
    "tools": frozenset({"classify", "tools", "repair", "unread", "closing"}),
}
"""The prompts that a loop cannot do without."""
_ALLOWED = frozenset({PURPOSE, "tools", "repair", "closing"})
"""The same for an agent that has an allow-list: it is given its tools at once, and classifies nothing."""


class AgentContent(Message):
    """One agent's folder of content. A fault in it stops the service at its start, since it ships with the service."""

    model_config = ConfigDict(extra="forbid")

    agent: Token
    version: str = Field(pattern=r"^\d{1,9}\.\d{1,9}\.\d{1,9}$")
    loop: Literal["quick", "router", "tools", "task"]
    stages: tuple[str, ...] = Field(min_length=1)
    prompts: dict[str, str]
    directives: dict[str, str]
    phrases: dict[str, str]
    bootstrap: str = ""
    """Tag of the text that stands before every prompt; empty for an agent that has none."""

    @model_validator(mode="after")
    def _complete(self) -> AgentContent:
        required = _ALLOWED if PURPOSE in self.prompts else _PROMPTS.get(self.loop, frozenset())
        if missing := required - set(self.prompts):
            raise ValueError(f"{self.agent} lacks prompts: {', '.join(sorted(missing))}")
        if self.loop == "router" and set(self.directives) != {directive.value for directive in Directive}:
            raise ValueError(f"{self.agent} needs a text for each of the four directives, and for no other (D-120)")
        if lost := unknown(self.prompts.get(PURPOSE, "")):
            raise ValueError(f"{self.agent} is allowed tools that there are not: {', '.join(lost)}")
        for group in (self.prompts, self.directives, self.phrases):
            if blank := [name for name, text in group.items() if not text.strip()]:
                raise ValueError(f"{self.agent} has blank texts: {', '.join(blank)}")
        return self

    def digest(self) -> str:
        """Hash of all of it; the same content has the same one."""
        fields = self.model_dump(mode="json")
        if not self.bootstrap:  # as the version before, which does not know it: the two would replace one another for ever
            del fields["bootstrap"]
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    def prompt_tags(self) -> dict[str, str]:
        """Tag of the bundle that holds each prompt."""
        return {purpose: f"{self.agent}/{purpose}" for purpose in self.prompts}

    def directive_tags(self) -> dict[str, str]:
        """Tag of the element that holds each directive's text."""
        return {name: f"{self.agent}/directive/{name}" for name in self.directives}

    @property
    def name(self) -> str:
        """What a log calls it."""
        return self.agent
