"""The rules that a tenant's graph holds its writers to: active guardrails, and principles that say when they are broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from phronesis_contracts.constitution.insight import RuleHit
from phronesis_contracts.constitution.kinds import Kind
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionNode, Mention
from phronesis_contracts.constitution.writes import GuardrailHit

from .triggers import Subject, Trigger, trigger

RULES = ("guardrail", "principle")
"""Types whose nodes may be rules."""
_BLOCKING = frozenset({"block", "critical", "high"})
_CITED = 5
"""Rules that one refusal cites in full."""


@dataclass(frozen=True)
class Rule:
    """One rule."""

    mention: Mention
    trigger: Trigger
    blocks: bool
    response: str | None

    def hit(self, subject: Subject) -> RuleHit | None:
        """How something breaks it, if it does."""
        because = self.trigger.because(subject)
        if because is None:
            return None
        severity: Literal["block", "acknowledge"] = "block" if self.blocks else "acknowledge"
        return RuleHit(rule=self.mention, severity=severity, because=because, response=self.response)


def rule(node: ConstitutionNode) -> Rule | None:
    """The rule that a node is, or `None` where it says not when it is broken."""
    said = {**(node.properties or {}), **(node.model_extra or {})}
    text = said.get("trigger")
    found = trigger(text) if isinstance(text, str) else None
    if found is None:
        return None
    response = said.get("response") or said.get("statement") or node.summary
    mention = Mention(id=node.id, type=node.type, title=node.title, status=node.status)
    blocks = str(said.get("severity", "")).strip().casefold() in _BLOCKING
    return Rule(mention, found, blocks, str(response)[:500] if response else None)


def subject(type_name: str | None, content: Mapping[str, Any], *more: str) -> Subject:
    """What a node would say, for the rules to read.

    Args:
        type_name: its type, where that is known.
        content: its fields as messages have them.
        more: texts beside them.
    """
    kind = TYPES.get(type_name or "")
    texts = [content.get(name) for name in ("title", "summary", "description")]
    for one in kind.properties if kind else ():
        value = content.get(one.name)
        texts += value if one.kind is Kind.TEXTS and value else [value]
    texts += (content.get("properties") or {}).values()
    known = {"type": kind.name, "layer": kind.layer.value} if kind else {}
    return Subject({**content, **known}, (*more, *(text for text in texts if isinstance(text, str))))


def hits(rules: Iterable[Rule], of: Subject, changed: frozenset[str] | None = None) -> tuple[RuleHit, ...]:
    """The rules that something goes against, those that block first.

    Args:
        rules: the tenant's.
        of: what is held against them.
        changed: fields that a change touches; a rule that reads none of them was answered when they were written.
    """
    asked = (one for one in rules if changed is None or one.trigger.reads(changed))
    found = [hit for one in asked if (hit := one.hit(of)) is not None]
    return tuple(sorted(found, key=lambda hit: hit.severity != "block"))


def allow(found: Sequence[RuleHit], acknowledged: Iterable[str]) -> tuple[str, ...]:
    """Let through what breaks no rule but acknowledged ones, and return their ids.

    Raises:
        GuardrailHit: it breaks one that blocks, or one that was not named.
    """
    named = frozenset(acknowledged)
    blocking = [hit for hit in found if hit.severity == "block"]
    if blocking:
        raise GuardrailHit(f"this is not allowed: {_cited(blocking)}")
    unnamed = [hit for hit in found if hit.rule.id not in named]
    if unnamed:
        raise GuardrailHit(f"name in `acknowledge`, to do it all the same: {_cited(unnamed)}", field="acknowledge")
    return tuple(hit.rule.id for hit in found)


def _cited(found: Sequence[RuleHit]) -> str:
    said = [
        f"{hit.rule.type} {hit.rule.id} ({hit.rule.title!r}), because {hit.because}"
        + (f"; it says: {hit.response}" if hit.response else "")
        for hit in found[:_CITED]
    ]
    more = len(found) - _CITED
    return " | ".join(said) + (f" | and {more} more" if more > 0 else "")
