"""What editors do with the texts of their tenant.

List, show, compare, publish and take back; and start, stop and report experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from phronesis_bus import Call
from phronesis_contracts import NotFound, experiments, instructions

from ..library.handlers import Experiments, LibraryCache, Releases
from ..library.texts import Library, Overlay, Text
from .experiments import Sample, difference_interval, mean_interval
from .publication import apply_publication, compare_texts


class ReleaseHandlers:
    """The handlers.

    Args:
        libraries: what is told now.
        releases: the tenants' own releases.
        announce: called after a change, whose news stands in the outbox.
    """

    def __init__(self, libraries: LibraryCache, releases: Releases, announce: Callable[[], None]) -> None:
        self._libraries = libraries
        self._releases = releases
        self._announce = announce

    async def list_instructions(self, call: Call, request: instructions.ListInstructions) -> instructions.InstructionList:
        """Every text that fits, by tag."""
        library = await self._libraries.of(call.who.tenant)
        infos = (text.info() for _, text in sorted(library.all().items()))
        fitting = (
            info
            for info in infos
            if request.tier in (None, info.tier) and request.status in (None, info.status) and (info.own or not request.own)
        )
        return instructions.InstructionList(release=library.release, texts=tuple(fitting))

    async def show_instruction(self, call: Call, request: instructions.ShowInstruction) -> instructions.InstructionShown:
        """One text as the caller's tenant has it now, whatever its status."""
        library = await self._libraries.of(call.who.tenant)
        text = library.all().get(request.tag)
        if text is None:
            raise NotFound("there is no text with this tag")
        return instructions.InstructionShown(release=library.release, info=text.info(), content=text.content)

    async def list_releases(self, call: Call, request: instructions.ListReleases) -> instructions.ReleaseList:
        """The tenant's releases."""
        library = await self._libraries.of(call.who.tenant)
        return instructions.ReleaseList(release=library.release, releases=await self._releases.releases(call.who.tenant))

    async def diff_instructions(self, call: Call, request: instructions.DiffInstructions) -> instructions.InstructionDiff:
        """How two releases of the tenant differ."""
        library, tenant = await self._libraries.of(call.who.tenant), call.who.tenant
        after = library.overlay.number if request.after is None else request.after
        old, new = [await self._releases.texts(tenant, number) for number in (request.before, after)]
        return instructions.InstructionDiff(before=request.before, after=after, changes=_changes(library, old, new))

    async def publish_instructions(self, call: Call, request: instructions.PublishInstructions) -> instructions.Publication:
        """Publish texts for the tenant, or say what that would change."""
        if request.dry_run:
            library = await self._libraries.of(call.who.tenant)
            own = apply_publication(library, request.texts)
            changes = _changes(library, library.overlay.texts, own)
            return instructions.Publication(release=library.release, number=library.overlay.number, changes=changes)
        return self._done(call, await self._releases.publish(call, request))

    async def rollback_instructions(self, call: Call, request: instructions.RollbackInstructions) -> instructions.Publication:
        """Make an earlier release of the tenant active."""
        return self._done(call, await self._releases.rollback(call, request))

    def _done(self, call: Call, done: instructions.Publication) -> instructions.Publication:
        self._libraries.drop(call.who.tenant)
        self._announce()
        return done


def _changes(library: Library, old: Mapping[str, Text], new: Mapping[str, Text]) -> tuple[instructions.TextChange, ...]:
    before, after = (Library(library.platform, Overlay(0, texts)).all() for texts in (old, new))
    return compare_texts(before, after)


class ExperimentHandlers:
    """The handlers.

    Args:
        libraries: what is told now.
        experiments: the tenants' experiments.
        announce: called after a change, whose news stands in the outbox.
    """

    def __init__(self, libraries: LibraryCache, experiments: Experiments, announce: Callable[[], None]) -> None:
        self._libraries = libraries
        self._experiments = experiments
        self._announce = announce

    async def start_experiment(self, call: Call, request: experiments.StartExperiment) -> experiments.Experiment:
        """Start an experiment in the tenant."""
        return self._done(call, await self._experiments.start(call, request))

    async def stop_experiment(self, call: Call, request: experiments.ExperimentRef) -> experiments.Experiment:
        """Stop an experiment of the tenant."""
        return self._done(call, await self._experiments.stop(call, request.name))

    async def list_experiments(self, call: Call, request: experiments.ListExperiments) -> experiments.ExperimentList:
        """The tenant's experiments."""
        return experiments.ExperimentList(experiments=await self._experiments.experiments(call.who.tenant))

    async def record_outcome(self, call: Call, request: experiments.RecordOutcome) -> experiments.OutcomeRecorded:
        """Count an outcome for the arms that a user of the tenant is in."""
        return await self._experiments.record(call, request)

    async def report_experiment(self, call: Call, request: experiments.ReportExperiment) -> experiments.ExperimentReport:
        """What came of an experiment, by metric and arm."""
        known = {one.name: one for one in await self._experiments.experiments(call.who.tenant)}
        experiment = known.get(request.name)
        if experiment is None:
            raise NotFound("there is no such experiment")
        samples = await self._experiments.samples(call.who.tenant, request.name)
        metrics = tuple(
            experiments.MetricResult(metric=metric, arms=_arm_results(experiment, arms, request.confidence))
            for metric, arms in sorted(samples.items())
        )
        return experiments.ExperimentReport(experiment=experiment, confidence=request.confidence, metrics=metrics)

    def _done(self, call: Call, done: experiments.Experiment) -> experiments.Experiment:
        self._libraries.drop(call.who.tenant)
        self._announce()
        return done


_NOBODY = Sample(0, 0.0, 0.0, True)


def _arm_results(
    experiment: experiments.Experiment, samples: Mapping[str, Sample], confidence: float
) -> tuple[experiments.ArmResult, ...]:
    binary = all(sample.binary for sample in samples.values())
    first = samples.get(experiment.arms[0].name, _NOBODY)
    found = []
    for place, arm in enumerate(experiment.arms):
        sample = samples.get(arm.name, _NOBODY)
        found.append(
            experiments.ArmResult(
                arm=arm.name,
                exposed=arm.users,
                users=sample.users,
                mean=mean_interval(sample, confidence, binary=binary),
                against_first=difference_interval(sample, first, confidence, binary=binary) if place else None,
            )
        )
    return tuple(found)
