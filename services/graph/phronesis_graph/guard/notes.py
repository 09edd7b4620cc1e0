"""What the reading of one statement gathers.

Names and counts, what it says of levels, and the changes with which it is written out anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from .grammar import Rules
from .refusals import Rule, refusal
from .tree import Token
from .values import LEVELS, NOTHING, Value, levels_in


@dataclass(frozen=True)
class Naming:
    """Nodes whose level is compared with names of levels, or with parameters."""

    nodes: frozenset[int]
    levels: frozenset[str]
    parameters: frozenset[str]


@dataclass
class LevelConstraints:
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


@dataclass
class Changes:
    """What is put before, behind and in the place of tokens; the tokens are named by their number."""

    _before: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    _behind: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    _instead: dict[int, str] = field(default_factory=dict)

    def before(self, place: int, text: str) -> None:
        """Put `text` before a token, behind what was put there already."""
        self._before[place].append(text)

    def behind(self, place: int, text: str) -> None:
        """Put `text` behind a token, behind what was put there already."""
        self._behind[place].append(text)

    def instead(self, place: int, text: str) -> None:
        """Put `text` in the place of a token."""
        self._instead[place] = text

    def applied(self, tokens: Sequence[Token]) -> str:
        """The statement with the changes. Comments are gone, and between two words stands one space or none as before."""
        parts: list[str] = []
        end = 0
        for place, token in enumerate(tokens):
            if token.start > end:
                parts.append(" ")
            parts += [f" {text} " for text in self._before.get(place, ())]
            parts.append(self._instead.get(place, token.text))
            parts += [f" {text}" for text in self._behind.get(place, ())]
            end = token.stop + 1
        return "".join(parts).strip()


OWN = "phronesis_"
"""The beginning of the guard's own names; a caller's may not begin so."""
TENANT = f"{OWN}tenant"
"""The parameter that holds the tenant."""

MAX_NODES = 40
"""Node patterns in one statement."""
MAX_STEPS = 12
"""The upper bounds of all variable lengths of one statement, together."""
MAX_UNITS = 400
"""How much larger than a property or a parameter a value may become."""
MAX_UNWINDS = 2


@dataclass
class Notes:
    """Gathered while a statement is read; thrown away when it is refused."""

    rules: Rules
    changes: Changes = field(default_factory=Changes)
    levels: LevelConstraints = field(default_factory=LevelConstraints)
    parameters: set[str] = field(default_factory=set)
    limits: set[str] = field(default_factory=set)
    """Parameters that stand behind LIMIT or SKIP."""
    warnings: list[str] = field(default_factory=list)
    dangers: list[str] = field(default_factory=list)
    labels: dict[int, frozenset[str]] = field(default_factory=dict)
    """The labels of each node by its number."""
    picked: set[int] = field(default_factory=set)
    """Nodes of which a property is asked to have a value."""
    steps: int = 0
    unwinds: int = 0
    _numbers: count[int] = field(default_factory=count)
    _names: count[int] = field(default_factory=lambda: count(1))

    def node(self, labels: frozenset[str]) -> int:
        """A number for one more node pattern.

        Raises:
            QueryRefused: there are too many.
        """
        number = next(self._numbers)
        if number >= MAX_NODES:
            raise refusal(Rule.SIZE, f"a statement has at most {MAX_NODES} node patterns; ask in several steps")
        self.labels[number] = labels
        return number

    def own_name(self) -> str:
        """A name that no caller can have written."""
        return f"{OWN}{next(self._names)}"

    def walk(self, steps: int) -> None:
        """Count the steps of a variable length.

        Raises:
            QueryRefused: all of them together are too many.
        """
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise refusal(Rule.DEPTH, f"all variable lengths together go at most {MAX_STEPS} steps")

    def pick(self, owner: Value, given: Value) -> None:
        """Note that a property has to have a value that is given, or one of a node that was picked itself."""
        if given.given or given.nodes & self.picked:
            self.picked.update(owner.nodes)

    def unwind(self) -> None:
        """Count an UNWIND.

        Raises:
            QueryRefused: there are too many.
        """
        self.unwinds += 1
        if self.unwinds > MAX_UNWINDS:
            raise refusal(Rule.GROWTH, f"a statement has at most {MAX_UNWINDS} UNWIND; each multiplies the rows")
