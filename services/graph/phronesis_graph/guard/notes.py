"""What the reading of one statement gathers."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from .allowed import Rules
from .levels import LevelsNamed
from .refusals import Rule, refused
from .rewriting import Changes
from .values import Value

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
    levels: LevelsNamed = field(default_factory=LevelsNamed)
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
            raise refused(Rule.SIZE, f"a statement has at most {MAX_NODES} node patterns; ask in several steps")
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
            raise refused(Rule.DEPTH, f"all variable lengths together go at most {MAX_STEPS} steps")

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
            raise refused(Rule.GROWTH, f"a statement has at most {MAX_UNWINDS} UNWIND; each multiplies the rows")
