"""What the handlers need from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from phronesis_bus import Call
from phronesis_contracts import Principal
from phronesis_contracts.experiments import Experiment, OutcomeRecorded, RecordOutcome, StartExperiment
from phronesis_contracts.releases import Publication, PublishInstructions, ReleaseInfo, RollbackInstructions

from .domain.agents import AgentContent
from .domain.intervals import Sample
from .domain.library import Overlay, Platform, Running
from .domain.matrix import Matrix
from .domain.texts import Text

Content = AgentContent | Matrix
"""What ships: an agent's folder, or the matrix."""


class Store(Protocol):
    """Where released instructions stand. Every method raises `Unavailable` while the store is down, or not migrated yet."""

    async def release(self, content: Content) -> bool:
        """Release what ships where it is new, and announce it. Returns whether anything was written."""
        ...

    async def platform(self) -> Platform:
        """What ships, as of one moment."""
        ...

    async def overlay(self, tenant: str) -> Overlay:
        """A tenant's active release and running experiments, as of one moment."""
        ...

    async def overlay_at(self, tenant: str, number: int) -> Overlay:
        """A release of a tenant, active or not, without experiments; 0 has no text. Raises `NotFound`."""
        ...

    async def ping(self) -> None:
        """Raise `Unavailable` unless the store answers."""
        ...


class Releases(Protocol):
    """The tenants' own releases. Every method raises `Unavailable` while the store is down."""

    async def publish(self, call: Call, request: PublishInstructions) -> Publication:
        """Make a release of what is active with the request's texts over it, and make it the active one.

        Raises:
            Unpublishable: with every fault.
        """
        ...

    async def rollback(self, call: Call, request: RollbackInstructions) -> Publication:
        """Make an earlier release active.

        Raises:
            NotFound: the tenant has no such release.
            Conflict: it is active already, or there is none before.
        """
        ...

    async def releases(self, tenant: str) -> tuple[ReleaseInfo, ...]:
        """A tenant's releases, the newest first."""
        ...

    async def texts(self, tenant: str, number: int) -> Mapping[str, Text]:
        """A release's own texts; those of 0 are none.

        Raises:
            NotFound: the tenant has no such release.
        """
        ...


class Experiments(Protocol):
    """The tenants' experiments. Every method raises `Unavailable` while the store is down."""

    async def start(self, call: Call, request: StartExperiment) -> Experiment:
        """Start an experiment.

        Raises:
            Unpublishable: with every fault of the arms' texts.
            Conflict: the name is taken, or a running experiment tells one of these texts otherwise, or too many are running.
        """
        ...

    async def stop(self, call: Call, name: str) -> Experiment:
        """Stop an experiment; one that is stopped stays as it is.

        Raises:
            NotFound: the tenant has no such experiment.
        """
        ...

    async def experiments(self, tenant: str) -> tuple[Experiment, ...]:
        """A tenant's experiments, the newest first."""
        ...

    async def record(self, call: Call, request: RecordOutcome) -> OutcomeRecorded:
        """Count an outcome for the arms of a user.

        Raises:
            Conflict: the experiment has as many metrics as it may have.
        """
        ...

    async def samples(self, tenant: str, name: str) -> Mapping[str, Mapping[str, Sample]]:
        """What came of an experiment, by metric and arm."""
        ...


class Exposures(Protocol):
    """Who is in which arm."""

    async def arms(self, who: Principal, experiments: Sequence[Running]) -> dict[str, str]:
        """By experiment, the arm of a user, who is put into one and counted as exposed where that is new.

        An experiment that was stopped meanwhile is left out.

        Raises:
            Unavailable: the store is down.
        """
        ...
