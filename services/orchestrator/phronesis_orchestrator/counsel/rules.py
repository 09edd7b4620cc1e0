"""The rules that something goes against, as a reply cites them. Only a person acknowledges one, by naming it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from phronesis_contracts import ServiceError
from phronesis_contracts.constitution.insight import CHECK_POLICY_TOOL, CheckPolicy, PolicyChecked, RuleHit

from ..running import Running
from .desk import Desk
from .saying import cite, listed, paragraphs

log = logging.getLogger(__name__)

STAGE = "rules"
"""The stage of agents whose messages are held against the rules before anything is decided or written."""
_TEXT = 20_000
"""Characters of a text that are held against the rules."""


async def broken(
    running: Running, desk: Desk, text: str, type: str | None = None, fields: dict[str, Any] | None = None
) -> tuple[RuleHit, ...]:
    """The rules that a text goes against. Where they cannot be had the reply is marked: a write itself is checked by its owner.

    Args:
        running: the turn.
        desk: its tools.
        text: what is to be decided or written.
        type: of the node that is to be written.
        fields: its figures.
    """
    if not desk.has(CHECK_POLICY_TOOL):
        return ()
    try:
        request = CheckPolicy(text=text[:_TEXT] or "-", type=type, fields=fields or {})
        found: PolicyChecked = await desk.ask(CHECK_POLICY_TOOL, request)
    except ServiceError as error:
        log.warning("the rules could not be asked: %s", error.code)
        running.degrade(STAGE)
        return ()
    return found.hits


def told(hits: Iterable[RuleHit]) -> str:
    """What a reply says of the rules that were hit; empty for none."""
    all_hits = tuple({hit.rule.id: hit for hit in hits}.values())
    blocked = [hit for hit in all_hits if hit.severity == "block"]
    others = [hit for hit in all_hits if hit.severity != "block"]
    ids = ", ".join(f"`{hit.rule.id}`" for hit in others)
    return paragraphs(
        f"This is not allowed:\n{listed(map(_told, blocked))}" if blocked else "",
        f"This goes against:\n{listed(map(_told, others))}\nTo do it all the same, acknowledge by name: {ids}."
        if others
        else "",
    )


def _told(hit: RuleHit) -> str:
    said = f"the {hit.rule.type} {cite(hit.rule)}, because {hit.because}"
    return f"{said}. It says: {hit.response}" if hit.response else said
