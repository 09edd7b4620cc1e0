"""What editors do with experiments: start, stop, list, report; and the outcomes that count for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from phronesis_bus import Call
from phronesis_contracts import NotFound
from phronesis_contracts import experiments as contract

from .domain.intervals import Sample, of_difference, of_mean
from .libraries import Libraries
from .ports import Experiments


class Experimenting:
    """The handlers.

    Args:
        libraries: what is told now.
        experiments: the tenants' experiments.
        announce: called after a change, whose news stands in the outbox.
    """

    def __init__(self, libraries: Libraries, experiments: Experiments, announce: Callable[[], None]) -> None:
        self._libraries = libraries
        self._experiments = experiments
        self._announce = announce

    async def start_experiment(self, call: Call, request: contract.StartExperiment) -> contract.Experiment:
        """Start an experiment in the tenant."""
        return self._done(call, await self._experiments.start(call, request))

    async def stop_experiment(self, call: Call, request: contract.ExperimentRef) -> contract.Experiment:
        """Stop an experiment of the tenant."""
        return self._done(call, await self._experiments.stop(call, request.name))

    async def list_experiments(self, call: Call, request: contract.ListExperiments) -> contract.ExperimentList:
        """The tenant's experiments."""
        return contract.ExperimentList(experiments=await self._experiments.experiments(call.who.tenant))

    async def record_outcome(self, call: Call, request: contract.RecordOutcome) -> contract.OutcomeRecorded:
        """Count an outcome for the arms that a user of the tenant is in."""
        return await self._experiments.record(call, request)

    async def report_experiment(self, call: Call, request: contract.ReportExperiment) -> contract.ExperimentReport:
        """What came of an experiment, by metric and arm."""
        known = {one.name: one for one in await self._experiments.experiments(call.who.tenant)}
        experiment = known.get(request.name)
        if experiment is None:
            raise NotFound("there is no such experiment")
        samples = await self._experiments.samples(call.who.tenant, request.name)
        metrics = tuple(
            contract.MetricResult(metric=metric, arms=_results(experiment, arms, request.confidence))
            for metric, arms in sorted(samples.items())
        )
        return contract.ExperimentReport(experiment=experiment, confidence=request.confidence, metrics=metrics)

    def _done(self, call: Call, done: contract.Experiment) -> contract.Experiment:
        self._libraries.drop(call.who.tenant)
        self._announce()
        return done


_NOBODY = Sample(0, 0.0, 0.0, True)


def _results(
    experiment: contract.Experiment, samples: Mapping[str, Sample], confidence: float
) -> tuple[contract.ArmResult, ...]:
    binary = all(sample.binary for sample in samples.values())
    first = samples.get(experiment.arms[0].name, _NOBODY)
    found = []
    for place, arm in enumerate(experiment.arms):
        sample = samples.get(arm.name, _NOBODY)
        found.append(
            contract.ArmResult(
                arm=arm.name,
                exposed=arm.users,
                users=sample.users,
                mean=of_mean(sample, confidence, binary=binary),
                against_first=of_difference(sample, first, confidence, binary=binary) if place else None,
            )
        )
    return tuple(found)
