"""The same-level rule: what a statement says of levels, gathered while it is read, and judged when parameters are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .values import LEVELS, NOTHING, Value, levels_in


@dataclass(frozen=True)
class Naming:
    """Nodes whose level is compared with names of levels, or with parameters."""

    nodes: frozenset[int]
    levels: frozenset[str]
    parameters: frozenset[str]


@dataclass
class LevelsNamed:
    """Everything that one statement says of levels."""

    namings: list[Naming] = field(default_factory=list)
    same: list[tuple[int, int]] = field(default_factory=list)
    """Nodes joined by a relationship that stays on one level."""
    across: list[tuple[int, int]] = field(default_factory=list)
    """Nodes joined by a relationship that may join levels."""

    def name(self, level: Value, other: Value) -> None:
        """Note that a level is compared with `other`."""
        self.namings.append(Naming(level.nodes or frozenset({-1}), other.levels, other.parameters))

    def mixed(self, parameters: Mapping[str, object]) -> bool:
        """Whether two levels are named that no relationship across levels joins."""
        named = [
            (naming.nodes, naming.levels.union(*(levels_in(parameters.get(name)) for name in naming.parameters)))
            for naming in self.namings
        ]
        if len(NOTHING.union(*(levels for _, levels in named))) < 2:
            return False
        groups, islands = _Groups(self.same), _Groups([*self.same, *self.across])
        by_group: dict[int, set[str]] = {}
        found: set[int] = set()
        for nodes, levels in named:
            for node in nodes if levels else ():
                by_group.setdefault(groups.of(node), set()).update(levels)
                found.add(islands.of(node))
        return len(found) > 1 or any(len(levels & LEVELS) > 1 for levels in by_group.values())


class _Groups:
    """Which nodes belong together."""

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        self._above: dict[int, int] = {}
        for one, other in pairs:
            self._above[self.of(one)] = self.of(other)

    def of(self, node: int) -> int:
        while (above := self._above.get(node, node)) != node:
            node = above
        return node
