"""The names that a statement may use: labels, relationship types and properties."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from ..constitution.records import BARRED
from ..knowledge import LABELS
from ..ontology import RESERVED, LevelRule, Ontology
from . import refusals
from .allowed import VECTORS, Rules
from .refusals import Rule, refused
from .values import Level

TENANT_KEY = "tenant"
HIDDEN = ("memory", "platform", *(label.lower() for label in LABELS))
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
        """A label that may be asked for.

        Raises:
            QueryRefused: the rule set does not know it, or it is hidden.
        """
        if name.lower() in BARRED:
            raise refused(Rule.LABEL, "no such label; the constitutional graph is reached by tools of its own")
        return self._known(name, Rule.LABEL, "label", self._ontology.nodes)

    def relationship(self, name: str) -> str:
        """A relationship type that may be walked.

        Raises:
            QueryRefused: the rule set does not know it, or it is hidden.
        """
        return self._known(name, Rule.RELATIONSHIP, "relationship type", self._ontology.relationships)

    def key(self, name: str) -> str:
        """A key of any map.

        Raises:
            QueryRefused: it is the tenant's, or leads to an embedding.
        """
        lower = name.lower()
        if any(part in lower for part in VECTORS):
            raise refused(Rule.EMBEDDING, refusals.EMBEDDINGS)
        if lower == TENANT_KEY:
            raise refused(Rule.TENANT, "leave the tenant out: a query reads your own tenant's nodes, whatever it says")
        return name

    def property(self, name: str) -> str:
        """A property of a node or a relationship.

        Raises:
            QueryRefused: nothing has it, it is the tenant's, or it leads to an embedding.
        """
        self.key(name)
        if self._reading and name not in self._properties:
            raise refused(Rule.PROPERTY, f"no node has a property {name[:60]!r}; {_instead(name, self._properties)}")
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
        """Whether one of the labels is a node type of the twin."""
        return any(label in self._ontology.nodes for label in labels)

    def _known(self, name: str, rule: Rule, what: str, known: Iterable[str]) -> str:
        if name.lower().startswith(HIDDEN):
            raise refused(rule, f"no such {what}; knowledge items are reached by recall_memory")
        if self._reading and name not in known:
            raise refused(rule, f"the ontology has no {what} {name[:60]!r}; {_instead(name, known)}")
        if not _IDENTIFIER.fullmatch(name):
            raise refused(rule, f"a {what} is a letter and then up to 63 letters, digits and underscores")
        return name


def _instead(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    return f"did you mean {', '.join(close)}?" if close else "use the names that the instructions give"
