"""The labels, relationship types and properties that a statement may use, and what a type says of the labels of its ends."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from ..constitution.records import RESERVED_LABELS
from ..links.items import ITEM_LABELS
from ..twin.ontology import RESERVED, LevelRule, Ontology
from . import refusals
from .grammar import VECTORS, Rules
from .notes import Notes
from .refusals import Rule, refusal
from .tree import Tree
from .values import Level

TENANT_KEY = "tenant"
HIDDEN = ("memory", "platform", *(label.lower() for label in ITEM_LABELS))
"""Beginnings of labels that are the platform's or a user's own: nobody reaches them by a query."""
_UNSHOWN = frozenset({"tenant", "key", "hash"})
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


class Vocabulary:
    """The names of one rule set."""

    def __init__(self, ontology: Ontology, rules: Rules) -> None:
        self._ontology = ontology
        self._reading = rules is Rules.READING
        declared = (name for node in ontology.nodes.values() for name in node.properties)
        self._properties = frozenset(declared) | (RESERVED - _UNSHOWN)

    def label(self, name: str) -> str:
        """A label that may be asked for. Raises `QueryRefused`: the rule set does not know it, or it is hidden."""
        if name.lower() in RESERVED_LABELS:
            raise refusal(Rule.LABEL, "no such label; the constitutional graph is reached by tools of its own")
        return self._known(name, Rule.LABEL, "label", self._ontology.nodes)

    def relationship(self, name: str) -> str:
        """A relationship type that may be walked. Raises `QueryRefused`: the rule set does not know it, or it is hidden."""
        return self._known(name, Rule.RELATIONSHIP, "relationship type", self._ontology.relationships)

    def key(self, name: str) -> str:
        """A key of any map. Raises `QueryRefused`: it is the tenant's, or leads to an embedding."""
        lower = name.lower()
        if any(part in lower for part in VECTORS):
            raise refusal(Rule.EMBEDDING, refusals.EMBEDDINGS)
        if lower == TENANT_KEY:
            raise refusal(Rule.TENANT, "leave the tenant out: a query reads your own tenant's nodes, whatever it says")
        return name

    def property(self, name: str) -> str:
        """A property. Raises `QueryRefused`: nothing has it, it is the tenant's, or it leads to an embedding."""
        self.key(name)
        if self._reading and name not in self._properties:
            raise refusal(Rule.PROPERTY, f"no node has a property {name[:60]!r}; {_instead(name, self._properties)}")
        return name

    def level(self, name: str) -> Level:
        """Whether a property is the level that the same-level rule is about."""
        return Level.YES if self._reading and name.lower() == "level" else Level.NO

    def across_levels(self, types: Iterable[str]) -> bool:
        """Whether all of the relationship types may join levels."""
        types = tuple(types)
        found = [self._ontology.relationships[name] for name in types if name in self._ontology.relationships]
        return bool(types) and len(found) == len(types) and all(each.rule is not LevelRule.SAME for each in found)

    def ends(self, types: Iterable[str], sources: bool, targets: bool) -> frozenset[str]:
        """The labels that the ends of relationships of these types have."""
        found: set[str] = set()
        for each in (self._ontology.relationships[name] for name in types if name in self._ontology.relationships):
            found.update(each.sources if sources else ())
            found.update(each.targets if targets else ())
        return frozenset(found)

    def twin(self, labels: Iterable[str]) -> bool:
        return any(label in self._ontology.nodes for label in labels)

    def _known(self, name: str, rule: Rule, what: str, known: Iterable[str]) -> str:
        if name.lower().startswith(HIDDEN):
            raise refusal(rule, f"no such {what}; knowledge items are reached by recall_memory")
        if self._reading and name not in known:
            raise refusal(rule, f"the ontology has no {what} {name[:60]!r}; {_instead(name, known)}")
        if not _IDENTIFIER.fullmatch(name):
            raise refusal(rule, f"a {what} is a letter and then up to 63 letters, digits and underscores")
        return name


def _instead(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    return f"did you mean {', '.join(close)}?" if close else "use the names that the instructions give"


MAX_STEPS_OF_ONE = 5
"""The upper bound of one variable length."""
_BOUNDS = frozenset(str(steps) for steps in range(1, MAX_STEPS_OF_ONE + 1))


@dataclass(frozen=True)
class Step:
    """A relationship pattern between its left and its right node."""

    tree: Tree
    types: tuple[str, ...]
    forwards: bool
    backwards: bool
    variable_length: bool

    def ends(self, vocabulary: Vocabulary, left: bool) -> frozenset[str]:
        """The labels that one end has by the ontology."""
        either = self.variable_length or self.forwards == self.backwards
        begins = self.forwards if left else self.backwards
        return vocabulary.ends(self.types, either or begins, either or not begins)


def read_step(tree: Tree, types: tuple[str, ...], notes: Notes) -> Step:
    """A relationship pattern. Raises `QueryRefused`: its length has no bound or a high one, or a length without a type."""
    length = tree.child("pathLength")
    if length is not None and tree.child("expression") is not None:
        raise refusal(Rule.PATTERN, "put the condition on a variable length into WHERE behind the pattern")
    if length is not None:
        notes.walk(_bound(length))
        if not types and notes.rules is Rules.READING:
            raise refusal(Rule.RELATIONSHIP, "a variable length names its types: -[:CLOSE_GAPS|GAPS_SCOPE*1..3]->")
    return Step(tree, types, tree.child("rightArrow") is not None, tree.child("leftArrow") is not None, length is not None)


def _bound(length: Tree) -> int:
    last = length.parts[-1].text()
    if last not in _BOUNDS:
        raise refusal(Rule.DEPTH, f"a variable length has an upper bound of at most {MAX_STEPS_OF_ONE}: -[:TYPE*1..3]->")
    return int(last)
