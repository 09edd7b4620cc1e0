"""Limits of calls: of models by purpose, with the profiles that they come from, and the breakers that stop calls in vain."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Literal, get_args

from phronesis_contracts import ModelUnavailable, ServiceError

Purpose = Literal[
    "router",
    "final",
    "summarise",
    "classify",
    "tools",
    "rewrite",
    "learn",
    "intent",
    "preflight",
    "reflect",
    "decompose",
    "evaluate",
    "criticise",
    "task_report",
    "understand",
    "formulate",
    "client",
    "form",
    "wishes",
]
"""What a model is called for."""
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
OptionalCall = Literal["intent", "preflight", "reflect", "summarise", "learn", "understand"]
"""Calls that a turn can do without: rules, or nobody, then do what they are for."""
OPTIONAL_CALLS: frozenset[OptionalCall] = frozenset(get_args(OptionalCall))


class ModelProfile(StrEnum):
    """What the limits are made for."""

    HOSTED = "hosted"
    """A provider's model: it answers within seconds, and serves many calls at once."""
    LOCAL = "local"
    """A model on the machine itself: slow is no error, and one call is made at a time."""


TRIES = 3
"""Tries of a call where nothing else is said."""


@dataclass(frozen=True)
class CallLimits:
    """How the calls of one purpose are made."""

    model: str
    seconds: float
    """For all tries together."""
    max_tokens: int
    """Tokens that the model may write, its reasoning counted in."""
    effort: str
    """How hard a reasoning model thinks; sent to models that take it."""
    tries: int = TRIES


Limits = Mapping[Purpose, CallLimits]
_LIGHT: frozenset[Purpose] = frozenset({"router", "summarise", "learn", "intent", "preflight", "evaluate", "understand"})
"""Purposes of the light model, where the turn's tier names none."""
_EFFORT: dict[Purpose, str] = {
    "final": "medium",
    "tools": "medium",
    "rewrite": "medium",
    "decompose": "medium",
    "client": "medium",
}
_ONE_TRY: frozenset[Purpose] = frozenset(
    {"preflight", "decompose", "evaluate", "criticise", "task_report", "understand", "formulate", "wishes"}
)
ANSWER = 4_000
"""Tokens that the longest answers may have."""
_SHARE = 4
"""An answer takes at most one part in so many of the context."""
_HOSTED_SECONDS: dict[Purpose, float] = {
    "router": 8.0,
    "final": 20.0,
    "summarise": 4.0,
    "classify": 12.0,
    "tools": 20.0,
    "rewrite": 20.0,
    "learn": 30.0,
    "intent": 4.0,
    "preflight": 8.0,
    "reflect": 8.0,
    "decompose": 20.0,
    "evaluate": 3.0,
    "criticise": 10.0,
    "task_report": 30.0,
    "understand": 5.0,
    "formulate": 7.0,
    "client": 20.0,
    "form": 20.0,
    "wishes": 8.0,
}
_HOSTED_TOKENS: dict[Purpose, int] = {
    purpose: 2_000 if purpose in _LIGHT and purpose != "learn" else ANSWER for purpose in PURPOSES
}
_LOCAL_SECONDS: dict[Purpose, float] = {
    purpose: 420.0 if purpose in ("final", "tools", "rewrite", "decompose", "task_report", "learn", "client", "form") else 180.0
    for purpose in PURPOSES
}
_LONG: frozenset[Purpose] = frozenset({"decompose", "task_report"})
"""Purposes whose answers are of no use where they are cut short."""
_LOCAL_TOKENS: dict[Purpose, int] = {
    purpose: 256
    if purpose in ("router", "classify", "intent", "evaluate", "criticise", "understand")
    else 1_024
    if purpose in _LONG
    else 512
    for purpose in PURPOSES
}


@dataclass(frozen=True)
class ProfileDefaults:
    """What a profile sets where a setting is left out."""

    seconds: Mapping[Purpose, float]
    tokens: Mapping[Purpose, int]
    tries: int
    concurrency: int
    """Calls that one endpoint is asked at once."""
    optional: frozenset[OptionalCall]
    turn_limit: float
    """Seconds of one attempt at a turn."""
    reserve: float
    """Seconds of a turn's time that model calls leave for the rules to answer in."""


PROFILES: Mapping[ModelProfile, ProfileDefaults] = {
    ModelProfile.HOSTED: ProfileDefaults(_HOSTED_SECONDS, _HOSTED_TOKENS, TRIES, 100, OPTIONAL_CALLS, 60.0, 5.0),
    ModelProfile.LOCAL: ProfileDefaults(_LOCAL_SECONDS, _LOCAL_TOKENS, 2, 1, frozenset({"understand"}), 840.0, 30.0),
}


def call_limits(
    profile: ModelProfile,
    light: str,
    deep: str,
    context: int,
    seconds: Mapping[Purpose, float] | None = None,
    tokens: Mapping[Purpose, int] | None = None,
    tries: Mapping[Purpose, int] | None = None,
) -> dict[Purpose, CallLimits]:
    """The limits of every purpose.

    Args:
        light: name of the light model.
        deep: name of the other.
        context: tokens that a prompt and its answer may have together; no answer takes more than a quarter of them.
        seconds: in place of the profile's, by purpose; `tokens` and `tries` likewise.
    """
    known = PROFILES[profile]
    all_seconds, all_tokens = {**known.seconds, **(seconds or {})}, {**known.tokens, **(tokens or {})}
    return {
        purpose: CallLimits(
            light if purpose in _LIGHT else deep,
            all_seconds[purpose],
            min(all_tokens[purpose], context // _SHARE),
            _EFFORT.get(purpose, "low"),
            (tries or {}).get(purpose, 1 if purpose in _ONE_TRY else known.tries),
        )
        for purpose in PURPOSES
    }


log = logging.getLogger(__name__)


class BreakerState(IntEnum):
    """Where a breaker is."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


def _refuse_model(wait: float) -> ServiceError:
    return ModelUnavailable("the language model failed several times in a row", retry_after=wait)


class Breaker:
    """Counts the failures in a row of one service, or of one model's endpoint, for all turns of the process.

    Closed, it lets every call through. After `failures` in a row it opens: calls are refused at once, so that a turn
    falls back, or waits, without trying. After `rest` seconds it is half open: one call is let through, and closes or opens it.

    Args:
        rest: seconds that it stays open.
        clock: seconds that only grow.
        refuse: makes the refusal of a call, by the seconds after which one may succeed.
    """

    def __init__(
        self,
        endpoint: str = "the model",
        failures: int = 5,
        rest: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
        refuse: Callable[[float], ServiceError] = _refuse_model,
    ) -> None:
        self._endpoint, self._limit, self._rest, self._clock, self._refuse = endpoint, failures, rest, clock, refuse
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False
        self._era = 0

    @property
    def state(self) -> BreakerState:
        """Where it is at this moment."""
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._clock() < self._open_until else BreakerState.HALF_OPEN

    def figure(self) -> float:
        """Its state as a figure: 0 closed, 1 half open, 2 open."""
        return float(self.state)

    @property
    def refuses(self) -> bool:
        """Whether a call would be refused at this moment: it is open, or half open with its one call on the way."""
        return self.state is BreakerState.OPEN or (self.state is BreakerState.HALF_OPEN and self._probing)

    def enter(self) -> int:
        """Ask to make a call.

        Returns:
            The era that the call belongs to, for `leave()`.

        Raises:
            ServiceError: it is open, or another call is the probe.
        """
        if self._open_until is not None:
            wait = self._open_until - self._clock()
            if wait > 0 or self._probing:
                raise self._refuse(round(max(wait, 1.0), 1))
            self._probing = True
        return self._era

    def leave(self, era: int, healthy: bool | None) -> None:
        """Say how a call went; `None` where it says nothing of the endpoint's health."""
        if era != self._era:
            return  # begun before it opened or closed: its end is old news
        self._probing = False
        if healthy:
            self._failures = 0
            if self._open_until is not None:
                self._open_until, self._era = None, era + 1
                log.info("%s answers again; calls go through", self._endpoint)
        elif healthy is False:
            self._failures += 1
            if self._open_until is not None or self._failures >= self._limit:
                self._open_until, self._era = self._clock() + self._rest, era + 1
                log.warning("%s failed %d times in a row; no calls for %g s", self._endpoint, self._failures, self._rest)
