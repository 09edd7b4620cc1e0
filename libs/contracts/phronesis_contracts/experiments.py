"""Contracts of experiments on the instructions: arms, who is in which, what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from .agents import EDITORS
from .instructions import MAX_TEXT, Tag
from .messages import Event, Message, Rpc
from .principal import Token
from .tools import Effect, Risk, Tool

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
"""The name of an experiment, an arm or a metric."""


class Arm(Message):
    """One arm. An arm without texts is told what everybody is told."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    weight: int = Field(ge=1, le=1000)
    """Its share of the users, as a part of the sum of all arms' weights."""
    texts: dict[Tag, Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]] = Field(
        default_factory=dict, max_length=20
    )
    """By tag, what this arm is told instead."""


class StartExperiment(Message):
    """An experiment; its first arm is the one that the others are compared with."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    arms: tuple[Arm, ...] = Field(min_length=2, max_length=8)


class ExperimentRef(Message):
    """One experiment by name."""

    model_config = ConfigDict(extra="forbid")

    name: Name


class ArmInfo(Message):
    """An arm without its texts."""

    name: str
    weight: int
    tags: tuple[str, ...]
    users: int
    """Who has been told the experiment's texts in this arm."""


class Experiment(Message):
    """An experiment as it stands."""

    name: str
    status: Literal["running", "stopped"]
    arms: tuple[ArmInfo, ...]
    started_at: datetime
    stopped_at: datetime | None = None


class ListExperiments(Message):
    """The tenant's experiments."""

    model_config = ConfigDict(extra="forbid")


class ExperimentList(Message):
    """The newest first."""

    experiments: tuple[Experiment, ...]


class RecordOutcome(Message):
    """Something that came of what a user was told, for every running experiment that the user is in."""

    model_config = ConfigDict(extra="forbid")

    user: Token
    metric: Name
    value: float = Field(allow_inf_nan=False, ge=-1e12, le=1e12)
    """For a yes or no: 1 or 0."""
    experiment: Name | None = None
    """Only this one."""


class OutcomeRecorded(Message):
    """By experiment, the arm that it counts for; none where the user is in no experiment."""

    arms: dict[str, str]


class Interval(Message):
    """An estimate between two bounds."""

    estimate: float
    low: float
    high: float
    method: str


class ArmResult(Message):
    """What came of one arm, by one metric. The user is the unit: each counts once, with the mean of its outcomes."""

    arm: str
    exposed: int
    """Users who were told this arm."""
    users: int
    """Those of them with an outcome."""
    mean: Interval | None = None
    """Absent where there are too few users."""
    against_first: Interval | None = None
    """This arm's mean less the first arm's."""


class MetricResult(Message):
    """One metric over all arms."""

    metric: str
    arms: tuple[ArmResult, ...]


class ReportExperiment(Message):
    """What came of an experiment."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    confidence: float = Field(default=0.95, ge=0.5, le=0.999)
    """Share of such intervals that hold the true value."""


class ExperimentReport(Message):
    """Who was in which arm, and what came of it."""

    experiment: Experiment
    confidence: float
    metrics: tuple[MetricResult, ...]


class Exposed(Message):
    """A user was told an experiment's texts for the first time; told once for user and experiment."""

    experiment: str
    user: str
    arm: str


START_EXPERIMENT = Rpc("instructions.v1.experiments.start", StartExperiment, Experiment, timeout=15.0)
STOP_EXPERIMENT = Rpc("instructions.v1.experiments.stop", ExperimentRef, Experiment)
LIST_EXPERIMENTS = Rpc("instructions.v1.experiments.list", ListExperiments, ExperimentList)
REPORT_EXPERIMENT = Rpc("instructions.v1.experiments.report", ReportExperiment, ExperimentReport, timeout=15.0)
RECORD_OUTCOME = Rpc("instructions.v1.outcomes.record", RecordOutcome, OutcomeRecorded)
EXPOSED = Event("instructions.v1.exposed", Exposed)

START_EXPERIMENT_TOOL = Tool(
    "start_experiment",
    "Start an experiment in the caller's tenant: users are divided among arms by weight, and each arm is told its own texts.",
    START_EXPERIMENT,
    risk=Risk.HIGH,
    kind=Effect.SPEND,
    agents=EDITORS,
)
STOP_EXPERIMENT_TOOL = Tool(
    "stop_experiment",
    "Stop an experiment: everybody is told the same again, and no more outcomes count.",
    STOP_EXPERIMENT,
    risk=Risk.MEDIUM,
    agents=EDITORS,
)
LIST_EXPERIMENTS_TOOL = Tool(
    "list_experiments", "List the experiments of the caller's tenant.", LIST_EXPERIMENTS, agents=EDITORS
)
REPORT_EXPERIMENT_TOOL = Tool(
    "report_experiment",
    "Report on an experiment: users and outcomes by arm, with confidence intervals and differences from the first arm.",
    REPORT_EXPERIMENT,
    agents=EDITORS,
)
RECORD_OUTCOME_TOOL = Tool(
    "record_outcome",
    "Record what came of what a user was told; it counts for the arms of running experiments that the user is in.",
    RECORD_OUTCOME,
    risk=Risk.LOW,
    agents=EDITORS,
)
