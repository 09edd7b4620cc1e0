"""What an agent's content is, and when it replaces what was released before."""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from phronesis.contracts import Message, Token
from phronesis.contracts.orchestrator import Directive

_PROMPTS = {
    "router": frozenset({"router", "final", "repair"}),
    "quick": frozenset({"classify", "repair"}),
    "tools": frozenset({"classify", "tools", "repair", "unread", "closing"}),
}
"""The prompts that a loop cannot do without."""


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
        if missing := _PROMPTS.get(self.loop, frozenset()) - set(self.prompts):
            raise ValueError(f"{self.agent} lacks prompts: {', '.join(sorted(missing))}")
        if self.loop == "router" and set(self.directives) != {directive.value for directive in Directive}:
            raise ValueError(f"{self.agent} needs a text for each of the four directives, and for no other (D-120)")
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


def replaces(content: AgentContent, last: tuple[str, str] | None) -> bool:
    """Whether content is to be released over what is there. An older version never is: in a rolling update the old copies
    would otherwise take the new texts back.

    Args:
        content: from the files.
        last: version and digest of what was released last; `None` before the first release.
    """
    if last is None:
        return True
    version, digest = last
    return digest != content.digest() and _order(content.version) >= _order(version)


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
