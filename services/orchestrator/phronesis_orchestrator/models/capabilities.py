"""What an endpoint can do with a model, found out by asking it and never read off the model's name.

Structured output has dialects. Each is tried with a request for two tokens, strictest first, and the first that the endpoint
takes and keeps to is used from then on. What was found is kept for each model, for a while; a refusal that contradicts it
makes the next call find it out anew.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

log = logging.getLogger(__name__)


class Dialect(StrEnum):
    """A way to ask for structured output, as `response_format` or beside it; the strictest first."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT_WITH_SCHEMA = "json_object_with_schema"
    GUIDED_JSON = "guided_json"
    JSON_OBJECT = "json_object"
    TEXT = "text"
    """None is taken: the prompt alone lists the keys."""

    @property
    def enforces(self) -> bool:
        """Whether the endpoint holds the model to a schema."""
        return self in (Dialect.JSON_SCHEMA, Dialect.JSON_OBJECT_WITH_SCHEMA, Dialect.GUIDED_JSON)

    @property
    def takes_free_schemas(self) -> bool:
        """Whether a schema need not be in the form of strict modes."""
        return self in (Dialect.JSON_OBJECT_WITH_SCHEMA, Dialect.GUIDED_JSON)


def schema_options(dialect: Dialect, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The options of a request that ask for an object of a schema."""
    match dialect:
        case Dialect.JSON_SCHEMA:
            named = {"name": name, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case Dialect.JSON_OBJECT_WITH_SCHEMA:
            return {"response_format": {"type": "json_object", "schema": schema}}
        case Dialect.GUIDED_JSON:
            return {"extra_body": {"guided_json": schema}}
        case Dialect.JSON_OBJECT:
            return {"response_format": {"type": "json_object"}}
        case Dialect.TEXT:
            return {}


@dataclass(frozen=True)
class Capabilities:
    """What one endpoint can do with one model."""

    structured: Dialect
    json_object: bool
    """Whether it takes `{"type": "json_object"}` where no schema is at hand."""
    tools: bool
    streaming: bool
    limit_field: str = "max_completion_tokens"
    """The option that it limits an answer's length by."""
    context_tokens: int | None = None
    """What the model holds, where the endpoint says it."""


class Refused(Exception):
    """The endpoint does not take a request of this form. Whatever else goes wrong with a probe is raised as it is.

    Args:
        failed: the failure, for where the form cannot be the reason.
    """

    def __init__(self, failed: Exception) -> None:
        super().__init__(str(failed))
        self.failed = failed


@dataclass(frozen=True)
class Probed:
    """The answer to a probe."""

    text: str
    cut: bool
    """Whether it was cut at its greatest length, and did not end by itself."""
    rejected: bool = False
    """Whether the provider took the form, and refused what the model wrote in two tokens as unfinished."""


class Prober(Protocol):
    """Asks an endpoint. Each method raises `Refused` where the form is not taken, and `TryFailed` where nobody answers."""

    async def complete(self, model: str, options: Mapping[str, Any]) -> Probed:
        """Ask for a word, with options."""

    async def stream(self, model: str, options: Mapping[str, Any]) -> bool:
        """Whether the answer came as a stream."""

    async def context(self, model: str) -> int | None:
        """The size of the context, where the endpoint says it."""


_TOKENS = 2
_LIMIT_FIELDS = ("max_completion_tokens", "max_tokens")
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
_TOOL = {"type": "function", "function": {"name": "look_up", "description": "Look a word up.", "parameters": _SCHEMA}}


async def probe(prober: Prober, model: str) -> Capabilities:
    """Find out what an endpoint can do with a model. Raises `TryFailed`: it does not answer at all."""
    field = await _limit_field(prober, model)
    limit = {field: _TOKENS}
    structured, plain = Dialect.TEXT, False
    for dialect in Dialect:
        if dialect is Dialect.TEXT:
            break
        if await _keeps(prober, model, {**limit, **schema_options(dialect, "word", _SCHEMA)}):
            structured = dialect
            plain = dialect is Dialect.JSON_OBJECT
            break
    if structured.enforces:
        plain = await _takes(prober, model, {**limit, "response_format": {"type": "json_object"}})
    found = Capabilities(
        structured=structured,
        json_object=plain,
        tools=await _takes(prober, model, {**limit, "tools": [_TOOL], "tool_choice": "auto"}),
        streaming=await _streams(prober, model, limit),
        limit_field=field,
        context_tokens=await prober.context(model),
    )
    log.info("the endpoint of %s: %s", model, found)
    return found


async def _limit_field(prober: Prober, model: str) -> str:
    """The option that ends an answer after so many tokens: a server that does not know one may ignore it.

    Raises:
        TryFailed: not even the plainest request is taken.
    """
    for field in _LIMIT_FIELDS:
        try:
            # Whoever ignores the limit says far more than a word or two; the second option keeps that short.
            if (await prober.complete(model, {field: _TOKENS, "stop": ["\n"]})).cut:
                return field
        except Refused:
            continue
    try:
        await prober.complete(model, {_LIMIT_FIELDS[0]: _TOKENS})
    except Refused as refused:
        raise refused.failed from refused
    return _LIMIT_FIELDS[0]


async def _keeps(prober: Prober, model: str, options: Mapping[str, Any]) -> bool:
    """Whether the form is taken and the answer begins as an object does; one that only thought in its two tokens counts."""
    try:
        found = await prober.complete(model, options)
    except Refused:
        return False
    return found.rejected or not found.text.strip() or found.text.lstrip().startswith("{")


async def _takes(prober: Prober, model: str, options: Mapping[str, Any]) -> bool:
    try:
        await prober.complete(model, options)
    except Refused:
        return False
    return True


async def _streams(prober: Prober, model: str, options: Mapping[str, Any]) -> bool:
    try:
        return await prober.stream(model, options)
    except Refused:
        return False


_AGAIN = 60.0
"""Seconds before a doubt makes an endpoint be asked anew: one that is merely ill is not asked on and on."""


class CapabilityCache:
    """What an endpoint can do, by model, found out once for all calls of the process.

    Args:
        lifetime: seconds after which it is found out anew.
        clock: seconds that only grow.
    """

    def __init__(self, prober: Prober, lifetime: float = 3_600.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._prober, self._lifetime, self._clock = prober, lifetime, clock
        self._found: dict[str, tuple[Capabilities, float]] = {}
        self._doubted: dict[str, float] = {}
        self._probes: dict[str, asyncio.Task[Capabilities]] = {}

    async def of(self, model: str) -> Capabilities:
        """What is known, or is found out now, which goes on where the caller does not wait.

        Raises:
            TryFailed: the endpoint does not answer.
        """
        if (known := self.known(model)) is not None:
            return known
        return await asyncio.shield(self._begun(model))

    def begin(self, models: Iterable[str]) -> None:
        """Begin to find out about models, before the first call needs it. What fails is found out by that call."""
        for model in models:
            if self.known(model) is None:
                self._begun(model)

    def _begun(self, model: str) -> asyncio.Task[Capabilities]:
        if (task := self._probes.get(model)) is None:
            task = self._probes[model] = asyncio.create_task(self._probe(model), name=f"probe {model}")
            task.add_done_callback(lambda ended: self._ended(model, ended))
        return task

    async def close(self) -> None:
        """Find out nothing more."""
        for task in (running := list(self._probes.values())):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _probe(self, model: str) -> Capabilities:
        found = await probe(self._prober, model)
        self._found[model] = (found, self._clock())
        return found

    def _ended(self, model: str, task: asyncio.Task[Capabilities]) -> None:
        self._probes.pop(model, None)
        if not task.cancelled():
            task.exception()  # whoever waited has it

    def known(self, model: str) -> Capabilities | None:
        """What is known of a model without asking."""
        found = self._found.get(model)
        if found is None or self._clock() - found[1] > self._lifetime:
            return None
        return found[0]

    def doubt(self, model: str) -> bool:
        """Forget what is known of a model, at most once a minute, since a refusal contradicts it; whether it was forgotten."""
        now = self._clock()
        if model not in self._found or now - self._doubted.get(model, -_AGAIN) < _AGAIN:
            return False
        self._doubted[model] = now
        del self._found[model]
        log.warning("the endpoint of %s refused what it took before; it is asked anew", model)
        return True
