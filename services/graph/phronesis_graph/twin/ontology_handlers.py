"""The handlers of tenants' own ontologies: publishing, showing, listing and rolling back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from phronesis_bus import Call, Sendable, audit_entry, sendable
from phronesis_contracts import Conflict
from phronesis_contracts import ontology as contract
from phronesis_contracts.service import AUDITED

from ..bolt.writes import SERVICE, news_id
from .active import ActiveOntology
from .ontology import Ontology
from .ontology_changes import compare, plan_checks
from .ontology_file import parse
from .ontology_store import BoltMisfits, BoltOntologies, NewVersion
from .vocabulary import to_view


class UnfitNodes(Conflict):
    """Stored nodes hold values that cannot stand under the ontology."""

    code = "graph.unfit_nodes"


class Names(Protocol):
    """The names of labels and relationship types in the store, of every tenant."""

    async def check_free(self, tenant: str, ontology: Ontology) -> None:
        """Raise `OntologyRefused`: a name is another kind of thing in the store, or a label of the tenant's own knowledge."""


class OntologyHandlers:
    """One method for each message.

    Args:
        declare: declares the types of an ontology in the store.
        wake: sends what was written to the outbox.
    """

    def __init__(
        self,
        store: BoltOntologies,
        misfits: BoltMisfits,
        names: Names,
        declare: Callable[[Ontology], Awaitable[None]],
        wake: Callable[[], None],
    ) -> None:
        self._store, self._misfits, self._names = store, misfits, names
        self._declare, self._wake = declare, wake

    async def publish(self, call: Call, request: contract.PublishOntology) -> contract.OntologyPublished:
        """Make a file the tenant's active ontology, as a new version; the active one published again changes nothing.

        Raises `OntologyRefused` (`field` is the path, the detail begins with the line), `UnfitNodes` (stored values cannot
        stand under it), `StaleOntology` (another version became active meanwhile).
        """
        tenant, after = call.who.tenant, parse(request.text)
        active = await self._store.of(tenant)
        if active.text == request.text:
            return _told(active, contract.OntologyChanges(), request.dry_run)
        changes = await self._compare(tenant, active.ontology, after)
        if request.dry_run:
            view = to_view(after, "dry-run")
            return contract.OntologyPublished(version=active.ontology.version, changes=changes, ontology=view, dry_run=True)
        _refuse_blocking(changes)
        await self._declare(after)
        number = await self._store.publish(call, request.text, active.ontology, _new(call, contract.PUBLISH_TOOL.name, after))
        self._wake()
        return _told(await self._store.version(tenant, number), changes)

    async def get(self, call: Call, request: contract.GetOntology) -> contract.OntologyFile:
        """The file of the active version, or of another one. Raises `NotFound`: the tenant keeps no such version."""
        active = await self._store.of(call.who.tenant)
        found = active if request.version is None else await self._store.version(call.who.tenant, request.version)
        number = found.ontology.version
        return contract.OntologyFile(
            version=number, active=number == active.ontology.version, text=found.text, ontology=found.view
        )

    async def versions(self, call: Call, request: contract.ListOntologies) -> contract.OntologyVersions:
        """The versions that the tenant keeps."""
        return contract.OntologyVersions(versions=tuple(await self._store.versions(call.who.tenant)))

    async def rollback(self, call: Call, request: contract.RollBackOntology) -> contract.OntologyPublished:
        """Make an earlier version the active one again. Raises as `publish` does, and `NotFound`: it is not kept."""
        tenant = call.who.tenant
        active, wanted = await self._store.of(tenant), await self._store.version(tenant, request.version)
        if wanted.ontology.version == active.ontology.version:
            return _told(active, contract.OntologyChanges(), request.dry_run)
        changes = await self._compare(tenant, active.ontology, wanted.ontology)
        if not request.dry_run:
            _refuse_blocking(changes)
            await self._declare(wanted.ontology)
            new = _new(call, contract.ROLL_BACK_TOOL.name, wanted.ontology)
            await self._store.roll_back(call, request.version, active.ontology, new)
            self._wake()
        return _told(wanted, changes, request.dry_run)

    async def _compare(self, tenant: str, before: Ontology, after: Ontology) -> contract.OntologyChanges:
        await self._names.check_free(tenant, after)
        # What the store has no label of yet it has no nodes of; a query for it would be remarked on.
        misfits = await self._misfits.of(tenant, plan_checks(before, after))
        return compare(before, after).model_copy(update={"misfits": misfits})


def _told(active: ActiveOntology, changes: contract.OntologyChanges, dry_run: bool = False) -> contract.OntologyPublished:
    return contract.OntologyPublished(version=active.ontology.version, changes=changes, ontology=active.view, dry_run=dry_run)


def _refuse_blocking(changes: contract.OntologyChanges) -> None:
    for misfit in changes.misfits:
        if misfit.blocking:
            raise UnfitNodes(
                f"{misfit.count} nodes hold another kind of value there ({misfit.because}); remove the values, or choose "
                "another name for the property",
                field=f"nodes.{misfit.type}.properties.{misfit.property}.type",
            )


def _new(call: Call, tool: str, ontology: Ontology) -> NewVersion:
    tenant = call.who.tenant

    def news(number: int) -> Sequence[Sendable]:
        entry = audit_entry(call.who, tool, {"version": number, "name": ontology.name, "types": list(ontology.nodes)[:60]})
        changed = contract.OntologyChanged(version=number)
        return (
            sendable(SERVICE, news_id(), tenant, contract.ONTOLOGY_CHANGED, changed),
            sendable(SERVICE, news_id(), tenant, AUDITED[SERVICE], entry),
        )

    return NewVersion(ontology.name, call.who.user, news)
