"""The ontology that a tenant's twin is held to at the moment, with everything that is made of it once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from phronesis_contracts.ontology import OntologyView

from ..guard import Allowed, Guard, Rules
from ..guard.parser import Parser
from .chains import Walks, build_walks
from .ontology import Ontology
from .ontology_file import load, packaged_text, packaged_version
from .vocabulary import to_view

MOST_ROWS = 500
"""Rows of a statement in one answer."""


class Check(Protocol):
    """Decides whether a statement may be run; it takes some milliseconds of thinking."""

    def __call__(self, statement: str, parameters: Mapping[str, Any], tenant: str, rules: Rules = Rules.READING) -> Allowed:
        """The statement as it may be run. Raises `QueryRefused`: it may not."""


@dataclass(frozen=True)
class ActiveOntology:
    """One version of an ontology. `text` is the file that it was read from."""

    ontology: Ontology
    text: str
    view: OntologyView
    walks: Walks
    check: Check


class Ontologies(Protocol):
    """The ontology of each tenant."""

    async def of(self, tenant: str) -> ActiveOntology:
        """The active one. Raises `Unavailable`, `TimedOut`."""

    def forget(self, tenant: str) -> None:
        """Look up anew which one is active."""


_PARSER = Parser()
"""One for all: it takes half a second and much memory to load."""


def activate(ontology: Ontology, text: str, version: str) -> ActiveOntology:
    """An ontology with what is made of it. `version`: as messages tell it."""
    # One row more than an answer holds, so that it can say whether there was more.
    guard = Guard(ontology, MOST_ROWS + 1, _PARSER)
    return ActiveOntology(ontology, text, to_view(ontology, version), build_walks(ontology), guard.check)


def activate_packaged() -> ActiveOntology:
    """The ontology of tenants that have none of their own."""
    return activate(load(), packaged_text(), packaged_version())
