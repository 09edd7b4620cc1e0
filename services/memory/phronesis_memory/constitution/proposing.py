"""Patterns as drafts in the mind layer, with what speaks for them (O-394). Nothing is changed or removed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.constitution.values import ConstitutionNode
from phronesis_contracts.constitution.writes import GuardrailHit

from .matrix import gathered
from .patterns import Pattern
from .ports import Chosen, NodeVectors
from .structure import Structure

log = logging.getLogger(__name__)

_SAME = 0.5
"""Share of nodes that two patterns of a kind have in common (of all that either has) where they are one."""
_KNOWN = 2_000
_CITED = 25
"""Nodes of one pattern that its evidence is joined to."""
CITES = "CITES"
"""From a piece of evidence to a node that it tells of; no end of it is declared."""


class Proposals:
    """Puts patterns into the mind layer.

    Args:
        vectors: the index, which knows the patterns that there are.
        structure: the graph.
    """

    def __init__(self, vectors: NodeVectors, structure: Structure) -> None:
        self._vectors = vectors
        self._structure = structure

    async def known(self, who: Principal, patterns: Sequence[Pattern]) -> dict[str, str]:
        """By digest the ids of patterns that were proposed before: also those that somebody archived, or that grew since."""
        chosen = Chosen(types=frozenset({"pattern"}), lifecycle=None)
        ids = (await gathered(self._vectors, who.tenant, chosen, _KNOWN)).ids if patterns else ()
        nodes = await self._structure.nodes(who, ids) if ids else {}
        drafts = [(node.id, node.metadata) for node in nodes.values() if node.metadata and "patternKind" in node.metadata]
        return {one.digest: id for one in patterns for id, metadata in drafts if _same(one, metadata)}

    async def propose(self, who: Principal, pattern: Pattern) -> str | None:
        """Make the draft with its evidence; the id of the one that there is where it was made before.

        A step that was done before is done again without effect, so that a run that broke off is finished by the next.
        `None` where the draft was made before and somebody deleted it, or a guardrail is against it.
        """
        try:
            evidence = await self._structure.create(who, "evidence", _evidence(pattern))
            draft = await self._structure.create(who, "pattern", _draft(pattern))
            await self._structure.relate(who, draft.id, "SUPPORTED_BY", evidence.id)
        except (NotFound, GuardrailHit) as error:
            log.warning("a pattern of %s is not proposed: %s", pattern.kind, error.code)
            return None
        for node in pattern.nodes[:_CITED]:
            try:
                await self._structure.relate(who, evidence.id, CITES, node.id)
            except NotFound:
                log.info("node %s went before its pattern was proposed", node.id)
        return draft.id


def _same(pattern: Pattern, metadata: Mapping[str, Any]) -> bool:
    cited = metadata.get("cites")
    if metadata["patternKind"] != pattern.kind or not isinstance(cited, list):
        return False
    both = set(cited) & set(pattern.ids)
    return len(both) >= _SAME * len(set(cited) | set(pattern.ids))


def _draft(pattern: Pattern) -> dict[str, Any]:
    return {
        "requestId": f"pattern-{pattern.digest}",
        "title": pattern.title,
        "summary": pattern.text[:2_000],
        "pattern": pattern.kind.replace("_", " "),
        "confidence": pattern.confidence,
        "metadata": {"draft": True, "patternKind": pattern.kind, "cites": list(pattern.ids)},
    }


def _evidence(pattern: Pattern) -> dict[str, Any]:
    lines = [f"{node.title} ({node.type} {node.id}{_figure(node)})" for node in pattern.nodes]
    return {
        "requestId": f"evidence-{pattern.digest}",
        "title": f"What was counted: {pattern.title}"[:500],
        "content": "\n".join(lines)[:15_000],
        "metadata": {"draft": True, "against": pattern.against},
    }


def _figure(node: ConstitutionNode) -> str:
    told = node.model_extra or {}
    roi, outcome = told.get("roi"), told.get("outcome")
    total = roi.get("total") if isinstance(roi, Mapping) else None
    return f", return {total:g}" if isinstance(total, int | float) else f", outcome: {outcome}" if outcome else ""
