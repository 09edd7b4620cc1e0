"""How a node changed over time, as versions and in sentences (O-387 to O-389)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from phronesis_contracts import NotFound
from phronesis_contracts.constitution import similarity
from phronesis_contracts.constitution.insight import EvolutionTold, VersionSeen
from phronesis_contracts.constitution.writes import Operation

from .ports import History, Version

_LONGEST = 160
"""Characters of a value in a sentence."""
_NOT_TOLD = frozenset({"updatedAt", "version", "provenance"})
"""Fields that change with every write, or are the service's own."""


class Evolution:
    """Tells how nodes changed."""

    def __init__(self, history: History) -> None:
        self._history = history

    async def of(self, tenant: str, id: str, limit: int) -> EvolutionTold:
        """The latest versions of a node, oldest first, and the same in sentences.

        Raises:
            NotFound: nothing is known of such a node.
        """
        versions = await self._history.versions(tenant, id, limit)
        if not versions:
            raise NotFound("there is no node with this id", field="id")
        return EvolutionTold(
            versions=tuple(_seen(version) for version in versions),
            narrative=narrative(versions),
            drifted=any((version.drift or 0.0) > similarity.DRIFT for version in versions),
        )


def narrative(versions: Sequence[Version]) -> str:
    """One sentence for each version, with its date and what it changed, and nothing else."""
    return "\n".join(_sentence(version) for version in versions)


def _seen(version: Version) -> VersionSeen:
    return VersionSeen(
        version=version.version,
        at=version.at,
        actor=version.actor,
        changed={name: _values(version.fields, name) for name in _told(version)},
        drift=version.drift,
    )


def _values(fields: Mapping[str, Mapping[str, object]], name: str) -> tuple[Any, Any]:
    seen = fields.get(name, {})
    return seen.get("old"), seen.get("new")


def _told(version: Version) -> list[str]:
    named = dict.fromkeys([*version.changed, *version.fields])
    return [name for name in named if name not in _NOT_TOLD]


def _sentence(version: Version) -> str:
    day = version.at.date().isoformat()
    if version.operation == Operation.DELETE:
        return f"{day}: removed for good."
    parts = [_part(name, version.fields.get(name)) for name in _told(version)]
    if version.operation == Operation.CREATE:
        return f"{day}: made" + (f", with {'; '.join(parts)}." if parts else ".")
    return f"{day}: {'; '.join(parts) or 'written again, with nothing changed'}."


def _part(name: str, values: Mapping[str, object] | None) -> str:
    if values is None:
        return f"{name} changed"
    old, new = values.get("old"), values.get("new")
    if old is None:
        return f"{name} {_said(new)}"
    return f"{name} removed, which was {_said(old)}" if new is None else f"{name} changed from {_said(old)} to {_said(new)}"


def _said(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(text.split())
    return f"“{text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}”"
