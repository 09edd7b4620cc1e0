"""What editors do with the texts of their tenant.

List, show, compare, publish and take back; and start, stop and report experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from phronesis_bus import Call
from phronesis_contracts import NotFound, Nothing, experiments, instructions
from phronesis_contracts.deletions import PartErased, UserData

from ..library.handlers import LibraryCache, Releases
from ..library.texts import Library, Overlay, Text
from .experiments import Sample, difference_interval, mean_interval
from .publication import apply_publication, compare_texts
from .store import PostgresExperiments, PostgresExposures

Out = TypeVar("Out")


class _Handlers:
    def __init__(self, libraries: LibraryCache, announce: Callable[[], None]) -> None:
        self._libraries = libraries
        self._announce = announce

    def _changed(self, call: Call, result: Out) -> Out:
        self._libraries.drop(call.who.tenant)
        self._announce()
        return result


class ReleaseHandlers(_Handlers):
    """Handlers of releases. `announce`: called after a change, whose event stands in the outbox."""

    def __init__(self, libraries: LibraryCache, releases: Releases, announce: Callable[[], None]) -> None:
        super().__init__(libraries, announce)
        self._releases = releases

    async def list_instructions(self, call: Call, request: instructions.ListInstructions) -> instructions.InstructionList:
        library = await self._libraries.of(call.who.tenant)
        infos = (text.info() for _, text in sorted(library.all().items()))
        fitting = (
            info
            for info in infos
            if request.tier in (None, info.tier) and request.status in (None, info.status) and (info.own or not request.own)
        )
        return instructions.InstructionList(release=library.release, texts=tuple(fitting))

    async def show_instruction(self, call: Call, request: instructions.ShowInstruction) -> instructions.InstructionShown:
        library = await self._libraries.of(call.who.tenant)
        text = library.all().get(request.tag)
        if text is None:
            raise NotFound("there is no text with this tag")
        return instructions.InstructionShown(release=library.release, info=text.info(), content=text.content)

    async def list_releases(self, call: Call, request: instructions.ListReleases) -> instructions.ReleaseList:
        library = await self._libraries.of(call.who.tenant)
        return instructions.ReleaseList(release=library.release, releases=await self._releases.releases(call.who.tenant))

    async def diff_instructions(self, call: Call, request: instructions.DiffInstructions) -> instructions.InstructionDiff:
        library, tenant = await self._libraries.of(call.who.tenant), call.who.tenant
        after = library.overlay.number if request.after is None else request.after
        old, new = [await self._releases.texts(tenant, number) for number in (request.before, after)]
        return instructions.InstructionDiff(before=request.before, after=after, changes=_changes(library, old, new))

    async def publish_instructions(self, call: Call, request: instructions.PublishInstructions) -> instructions.Publication:
        if request.dry_run:
            library = await self._libraries.of(call.who.tenant)
            own = apply_publication(library, request.texts)
            changes = _changes(library, library.overlay.texts, own)
            return instructions.Publication(release=library.release, number=library.overlay.number, changes=changes)
        return self._changed(call, await self._releases.publish(call, request))

    async def rollback_instructions(self, call: Call, request: instructions.RollbackInstructions) -> instructions.Publication:
        return self._changed(call, await self._releases.rollback(call, request))


def _changes(library: Library, old: Mapping[str, Text], new: Mapping[str, Text]) -> tuple[instructions.TextChange, ...]:
    before, after = (Library(library.platform, Overlay(0, texts)).all() for texts in (old, new))
    return compare_texts(before, after)


class ExperimentHandlers(_Handlers):
    """Handlers of experiments. `announce`: called after a change, whose event stands in the outbox."""

    def __init__(self, libraries: LibraryCache, experiments: PostgresExperiments, announce: Callable[[], None]) -> None:
        super().__init__(libraries, announce)
        self._experiments = experiments

    async def start_experiment(self, call: Call, request: experiments.StartExperiment) -> experiments.Experiment:
        return self._changed(call, await self._experiments.start(call, request))

    async def stop_experiment(self, call: Call, request: experiments.ExperimentRef) -> experiments.Experiment:
        return self._changed(call, await self._experiments.stop(call, request.name))

    async def list_experiments(self, call: Call, request: experiments.ListExperiments) -> experiments.ExperimentList:
        return experiments.ExperimentList(experiments=await self._experiments.experiments(call.who.tenant))

    async def record_outcome(self, call: Call, request: experiments.RecordOutcome) -> experiments.OutcomeRecorded:
        return await self._experiments.record(call, request)

    async def report_experiment(self, call: Call, request: experiments.ReportExperiment) -> experiments.ExperimentReport:
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


class UserHandlers:
    """What is held of a user, counted and erased."""

    def __init__(self, exposures: PostgresExposures) -> None:
        self._exposures = exposures

    async def held(self, call: Call, request: Nothing) -> UserData:
        """How much is held of the caller."""
        counts = await self._exposures.held(call.who)
        return UserData(held={name: count for name, count in counts.items() if count})

    async def erase(self, call: Call, request: Nothing) -> PartErased:
        """Erase what is held of the caller."""
        counts = await self._exposures.erase(call.who)
        return PartErased(removed={name: count for name, count in counts.items() if count}, done=True)


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
