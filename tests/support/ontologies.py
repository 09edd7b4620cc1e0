"""One ontology for every tenant, as tests of what is held to it need it."""

from __future__ import annotations

from dataclasses import replace

from phronesis_graph.twin.active import ActiveOntology, Check, activate, activate_packaged
from phronesis_graph.twin.ontology import Ontology


class OneOntology:
    """The `Ontologies` of a store in which nobody has one of their own.

    Args:
        ontology: the packaged one by default.
        check: takes the guard's place.
    """

    def __init__(self, ontology: Ontology | None = None, check: Check | None = None) -> None:
        active = activate_packaged() if ontology is None else activate(ontology, "", "1")
        self.active = active if check is None else replace(active, check=check)

    async def of(self, tenant: str) -> ActiveOntology:
        return self.active

    def forget(self, tenant: str) -> None:
        """There is no other one."""
