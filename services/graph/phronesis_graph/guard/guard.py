"""The guard: a statement is refused, or comes back held to one tenant and to a number of rows."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from phronesis_contracts.twin import QueryRefused

from ..twin.ontology import Ontology
from . import refusals
from . import screen as given
from .clauses import Clauses
from .grammar import VECTORS, Rules, objections
from .notes import TENANT, LevelConstraints, Notes
from .parser import Parsed, Parser
from .refusals import ORDER, Rule, refusal
from .screen import screen_text, screen_tokens
from .tree import Tree, name
from .values import levels_in
from .vocabulary import Vocabulary

MAX_VERDICTS = 1_000
"""Verdicts kept, of statements of at most 8,000 characters."""


@dataclass(frozen=True)
class Allowed:
    """A statement that may be run."""

    statement: str
    """With the tenant on every node, and a LIMIT."""
    parameters: Mapping[str, object]
    """The caller's and the guard's own."""
    warnings: tuple[str, ...] = ()
    """What could be written better."""
    dangerous: str | None = None
    """Why a change wants a confirmation, where it does."""


@dataclass(frozen=True)
class _Verdict:
    """What is known of a text whatever its parameters are."""

    statement: str
    parameters: frozenset[str]
    limits: frozenset[str]
    levels: LevelConstraints
    warnings: tuple[str, ...]
    dangerous: str | None


class Guard:
    """Decides which statements may be run. It may be used by several threads."""

    def __init__(self, ontology: Ontology, limit: int = 500, parser: Parser | None = None) -> None:
        self._vocabularies = {rules: Vocabulary(ontology, rules) for rules in Rules}
        self._limit = limit
        self._parser = parser or Parser()
        self._verdicts: OrderedDict[tuple[Rules, str], _Verdict | str] = OrderedDict()
        self._lock = threading.Lock()

    def load(self) -> None:
        """Load the parser (half a second), else the first check does. Raises `QueryRefused`, as every check then."""
        self._parser.load()

    def check(self, statement: str, parameters: Mapping[str, object], tenant: str, rules: Rules = Rules.READING) -> Allowed:
        """Hold a statement against the rules.

        Args:
            tenant: whose nodes it may reach, from the caller's envelope.

        Raises:
            QueryRefused: it breaks a rule; the detail names the rule and says what to write instead.
        """
        given.check_parameters(parameters)
        verdict = self._verdict(rules, statement)
        given.check_required(verdict.parameters, verdict.limits, parameters, self._limit)
        if rules is Rules.READING and verdict.levels.mixed(parameters):
            raise refusal(Rule.LEVEL, refusals.LEVELS)
        return Allowed(verdict.statement, {**parameters, TENANT: tenant}, verdict.warnings, verdict.dangerous)

    def _verdict(self, rules: Rules, statement: str) -> _Verdict:
        key = (rules, statement)
        with self._lock:
            known = self._verdicts.get(key)
            if known is not None:
                self._verdicts.move_to_end(key)
        if known is None:
            known = self._decide(rules, statement)
            with self._lock:
                self._verdicts[key] = known
                while len(self._verdicts) > MAX_VERDICTS:
                    self._verdicts.popitem(last=False)
        if isinstance(known, str):
            raise QueryRefused(known, field="cypher_query")
        return known

    def _decide(self, rules: Rules, statement: str) -> _Verdict | str:
        self._parser.load()
        try:
            return self._read(rules, statement)
        except QueryRefused as error:
            return error.detail
        except RecursionError:
            return refusal(Rule.SIZE, "the statement is nested too deeply; split it in two").detail

    def _read(self, rules: Rules, statement: str) -> _Verdict:
        text = screen_text(statement)
        stream, tokens = self._parser.tokens(text)
        screen_tokens(tokens)
        parsed = self._parser.parse(stream, tokens)
        _check_grammar(parsed.tree, rules)
        notes = Notes(rules)
        Clauses(notes, self._vocabularies[rules], self._limit).statement(parsed.tree)
        return _verdict(notes, parsed)


def _verdict(notes: Notes, parsed: Parsed) -> _Verdict:
    return _Verdict(
        notes.changes.applied(parsed.tokens),
        frozenset(notes.parameters),
        frozenset(notes.limits),
        notes.levels,
        tuple(dict.fromkeys(notes.warnings)),
        "; ".join(dict.fromkeys(notes.dangers)) or None,
    )


def _check_grammar(tree: Tree, rules: Rules) -> None:
    found = list(objections(tree, rules))
    if not found:
        return
    if rules is Rules.READING:
        found += _further_objections(tree)
    raise refusal(*min(found, key=lambda each: ORDER.index(each[0])))


def _further_objections(tree: Tree) -> list[tuple[Rule, str]]:
    """Rules told before others that a statement seems to break too."""
    found = []
    if len(frozenset[str]().union(*(levels_in(part.text()[1:-1]) for part in tree.find("stringLiteral")))) > 1:
        found.append((Rule.LEVEL, refusals.LEVELS))
    if any(part in name(key).lower() for key in tree.find("propertyKeyName") for part in VECTORS):
        found.append((Rule.EMBEDDING, refusals.EMBEDDINGS))
    return found
