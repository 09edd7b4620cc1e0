"""The rules of a tenant's graph: parsed and never run as code, read once, and cached until one of them is written."""

from __future__ import annotations

import asyncio
import logging
import operator
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from weakref import WeakValueDictionary

from phronesis_bus import News
from phronesis_contracts import Busy, TooLarge, Unavailable
from phronesis_contracts.constitution.insight import RuleHit
from phronesis_contracts.constitution.registry import TYPES
from phronesis_contracts.constitution.values import ConstitutionNode, Mention
from phronesis_contracts.constitution.writes import ConstitutionChanged, GuardrailHit
from phronesis_embedding.wordnet import WordNet

from .meaning import Judge, Vector, Wording, parse_wording
from .ports import ConstitutionRules
from .wording import plain_forms

log = logging.getLogger(__name__)

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_COMPARISON = re.compile(
    r"""\s*(?P<path>[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)\s*(?P<sign><=|>=|==|!=|<|>|=)\s*"""
    r"""(?:(?P<number>-?\d+(?:\.\d+)?)(?![\w.-])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[\w.:+-]+))\s*"""
)
_JOINT = re.compile(r"(and|&&)(?=\s)", re.IGNORECASE)
_MOST = 10
_LONGEST = 1_000
_UNREAD = frozenset(("id", "type", "layer", "status", "version", "createdAt", "updatedAt", "provenance"))
"""Fields whose words do not count: what the service says of a node, and where it is from."""


@dataclass(frozen=True)
class Subject:
    """What is held against the rules."""

    fields: Mapping[str, Any]
    """As messages have them; `roi.total` is found inside `roi`, and what the type does not declare inside `properties`."""
    said: Mapping[str, Any]
    """Whose words count, with the names of fields."""


@dataclass(frozen=True)
class Words:
    """Somebody does what these words say; `Understanding` finds out."""

    wording: Wording

    def reads(self, changed: frozenset[str]) -> bool:
        """Whether a change of these fields could set it off: any may hold a word."""
        return bool(changed - _UNREAD)


@dataclass(frozen=True)
class Comparison:
    """A field compared with a value."""

    path: str
    sign: str
    value: float | str

    def because(self, subject: Subject) -> str | None:
        """A field that is not there, or is of another kind than the value, sets nothing off."""
        found = _value_at(subject.fields, self.path)
        if isinstance(self.value, float):
            comparable = isinstance(found, int | float) and not isinstance(found, bool)
            hit = comparable and _SIGNS[self.sign](found, self.value)
        else:
            hit = isinstance(found, str) and _SIGNS[self.sign](found.casefold(), self.value.casefold())
        return f"{self.path} is {_format_value(found)} ({self.path} {self.sign} {_format_value(self.value)})" if hit else None

    def reads(self, changed: frozenset[str]) -> bool:
        """Whether a change of these fields could set it off: its own alone, or the bag that holds it."""
        return bool(changed & {self.path.split(".")[0], "properties"})


@dataclass(frozen=True)
class Comparisons:
    """All of these comparisons hold."""

    parts: tuple[Comparison, ...]

    def because(self, subject: Subject) -> str | None:
        found = [part.because(subject) for part in self.parts]
        return " and ".join(one for one in found if one) if all(found) else None

    def reads(self, changed: frozenset[str]) -> bool:
        """Whether a change of these fields could set it off: any of them may have been the last to hold."""
        return any(part.reads(changed) for part in self.parts)


Trigger: TypeAlias = Words | Comparisons
"""What a rule watches for."""


def parse_trigger(text: str) -> Trigger | None:
    """What a trigger says: `effortHours > 40 and type = task`, or else plain words; `None` where it says nothing."""
    text = text.strip()[:_LONGEST]
    if (parts := _parse_comparisons(text)) is not None:
        return Comparisons(parts)
    wording = parse_wording(text)
    return Words(wording) if wording else None


def _parse_comparisons(text: str) -> tuple[Comparison, ...] | None:
    parts: list[Comparison] = []
    at = 0
    while len(parts) < _MOST and (found := _COMPARISON.match(text, at)):
        parts.append(_parse_comparison(found))
        at = found.end()
        if at == len(text):
            return tuple(parts)
        joint = _JOINT.match(text, at)
        if joint is None:
            return None
        at = joint.end()
    return None


def _parse_comparison(found: re.Match[str]) -> Comparison:
    if found["number"] is not None:
        return Comparison(found["path"], found["sign"], float(found["number"]))
    value = next(found[name] for name in ("double", "single", "word") if found[name] is not None)
    return Comparison(found["path"], found["sign"], value)


def _value_at(fields: Mapping[str, Any], path: str) -> Any:
    for root in (fields, fields.get("properties")):
        found: Any = root
        if isinstance(root, Mapping) and path in root:
            return root[path]
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return None


def _format_value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)[:60]


RULE_TYPES = ("guardrail", "principle")
"""Types whose nodes may be rules."""
_BLOCKING = frozenset({"block", "critical", "high"})
_CITED = 5
"""Rules that one refusal cites in full."""


@dataclass(frozen=True)
class Rule:
    mention: Mention
    trigger: Trigger
    blocks: bool
    response: str | None

    def hit(self, because: str) -> RuleHit:
        """What is said of a write that breaks it."""
        severity: Literal["block", "acknowledge"] = "block" if self.blocks else "acknowledge"
        return RuleHit(rule=self.mention, severity=severity, because=because, response=self.response)


def rule_of_node(node: ConstitutionNode) -> Rule | None:
    """The rule that a node is, or `None` where it says not when it is broken."""
    said = {**(node.properties or {}), **(node.model_extra or {})}
    text = said.get("trigger")
    found = parse_trigger(text) if isinstance(text, str) else None
    if found is None:
        return None
    response = said.get("response") or said.get("statement") or node.summary
    blocks = str(said.get("severity", "")).strip().casefold() in _BLOCKING
    return Rule(_mention_of(node), found, blocks, str(response)[:500] if response else None)


def _mention_of(node: ConstitutionNode) -> Mention:
    return Mention(id=node.id, type=node.type, title=node.title, status=node.status)


def subject_of(type_name: str | None, content: Mapping[str, Any], *more: str) -> Subject:
    """What a node would say, for the rules to read."""
    kind = TYPES.get(type_name or "")
    known = {"type": kind.name, "layer": kind.layer.value} if kind else {}
    said = {name: value for name, value in content.items() if name not in _UNREAD}
    return Subject({**content, **known}, {"text": more, **said})


def allow(found: Sequence[RuleHit], acknowledged: Iterable[str], *, override: bool = False) -> dict[str, tuple[str, ...]]:
    """Let through what breaks no rule but acknowledged or overridden ones, and return the ids of both as a result tells them.

    Args:
        override: whether an admin gave a reason to break whatever rule it breaks.

    Raises:
        GuardrailHit: it breaks one that blocks, or one that was not named.
    """
    named = frozenset(acknowledged)
    blocking = [hit for hit in found if hit.severity == "block"]
    if blocking and not override:
        raise GuardrailHit(f"this is not allowed: {_cite(blocking)}")
    unnamed = [hit for hit in found if hit.severity != "block" and hit.rule.id not in named]
    if unnamed and not override:
        raise GuardrailHit(f"name in `acknowledge`, to do it all the same: {_cite(unnamed)}", field="acknowledge")
    return {
        "acknowledged": tuple(hit.rule.id for hit in found if hit.severity != "block" and hit.rule.id in named),
        "overridden": tuple(hit.rule.id for hit in (*blocking, *unnamed)),
    }


def _cite(found: Sequence[RuleHit]) -> str:
    said = [
        f"{hit.rule.type} {hit.rule.id} ({hit.rule.title!r}), because {hit.because}"
        + (f"; it says: {hit.response}" if hit.response else "")
        for hit in found[:_CITED]
    ]
    more = len(found) - _CITED
    return " | ".join(said) + (f" | and {more} more" if more > 0 else "")


_TENANTS = 256
"""Tenants whose rules are kept at most."""
_SECONDS = 60.0
"""For which they are kept: news that drops them may be missed while the broker is away."""


def open_judge() -> Judge:
    """WordNet and the local model, in 0.5 seconds and more."""
    from phronesis_embedding.local import BATCH, MiniLm  # 28 MB, which a process without rules in words does without

    model = MiniLm(threads=2)

    def embed(texts: Sequence[str]) -> list[Vector]:
        ordered = sorted(texts, key=len)  # batches hold texts of like lengths
        found: dict[str, Vector] = {}
        for at in range(0, len(ordered), BATCH):
            some = ordered[at : at + BATCH]
            found.update(zip(some, model.run([model.tokens(text) for text in some]), strict=True))
        return [found[text] for text in texts]

    return Judge(WordNet(forms=plain_forms), embed)


_WAITING, _WAITING_OF_TENANT = 64, 16
"""Writes that may wait to be held against rules in words: of all tenants, and of one."""
_LONGEST_WRITE = 60_000
"""Characters of a write that is held against rules in words: some 8 seconds of a core (measured with 8 rules)."""
_PATIENCE = 15.0
"""Seconds that one of them may wait, the first one for the model to load as well."""


class Understanding:
    """Holds writes against rules in words, in a thread of its own that is started when first asked.

    Args:
        open_: makes the judge; tried again at the next write where it fails.
    """

    def __init__(self, open_: Callable[[], Judge] = open_judge) -> None:
        self._open = open_
        self._judge: Judge | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._waiting = Counter[str]()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def because(self, tenant: str, wordings: Sequence[Wording], said: Mapping[str, Any]) -> list[str | None]:
        """Why a write breaks each of some rules, or `None`. Tenants take turns: one write of each is in the thread's queue.

        Raises `Unavailable` (it cannot be told, so that nobody may write), `TooLarge` (it is longer than can be read in time).
        """
        if len(str(said)) > _LONGEST_WRITE:
            raise TooLarge(f"a tenant with guardrails in words takes nodes of {_LONGEST_WRITE} characters at most")
        if self._waiting.total() >= _WAITING or self._waiting[tenant] >= _WAITING_OF_TENANT:
            raise Busy("too many writes wait to be held against guardrails", retry_after=1)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="guardrails")
        turn = self._turns.setdefault(tenant, asyncio.Lock())
        self._waiting[tenant] += 1
        try:
            async with asyncio.timeout(_PATIENCE), turn:
                return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, wordings, said)
        except Exception as error:  # whatever it is: what could not be checked is not let through
            log.exception("a write could not be held against guardrails")
            raise Unavailable("the write could not be held against the guardrails", retry_after=1) from error
        finally:
            self._waiting[tenant] -= 1
            if not self._waiting[tenant]:
                del self._waiting[tenant]

    async def close(self) -> None:
        """Begin nothing that still waits for the thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _work(self, wordings: Sequence[Wording], said: Mapping[str, Any]) -> list[str | None]:
        if self._judge is None:
            self._judge = self._open()
        return self._judge.because(wordings, said)


class RuleCache:
    def __init__(self, source: ConstitutionRules, understanding: Understanding | None = None) -> None:
        self._source = source
        self._understanding = understanding or Understanding()
        self.close = self._understanding.close
        self._kept: dict[str, tuple[float, tuple[Rule, ...], tuple[Mention, ...]]] = {}
        self._dropped = 0

    async def find_hits(
        self, tenant: str, rules: Iterable[Rule], of: Subject, changed: frozenset[str] | None = None
    ) -> tuple[RuleHit, ...]:
        """The rules of a tenant that something goes against, those that block first.

        Args:
            changed: fields that a change touches; a rule that reads none of them was answered when they were written.

        Raises `Unavailable`: a rule in words could not be held against it.
        """
        asked = [one for one in rules if changed is None or one.trigger.reads(changed)]
        wordings = list(dict.fromkeys(one.trigger.wording for one in asked if isinstance(one.trigger, Words)))
        told = (
            dict(zip(wordings, await self._understanding.because(tenant, wordings, of.said), strict=True)) if wordings else {}
        )
        reasons = [told[one.trigger.wording] if isinstance(one.trigger, Words) else one.trigger.because(of) for one in asked]
        found = [one.hit(reason) for one, reason in zip(asked, reasons, strict=True) if reason is not None]
        return tuple(sorted(found, key=lambda hit: hit.severity != "block"))

    async def of(self, tenant: str) -> tuple[Rule, ...]:
        """The rules of a tenant. Raises `Unavailable`."""
        return (await self._read(tenant))[0]

    async def unenforced(self, tenant: str) -> tuple[Mention, ...]:
        """Active guardrails of a tenant that are no rules: they have no trigger. Raises `Unavailable`."""
        return (await self._read(tenant))[1]

    async def _read(self, tenant: str) -> tuple[tuple[Rule, ...], tuple[Mention, ...]]:
        kept = self._kept.get(tenant)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1:]
        dropped = self._dropped
        nodes = await self._source.read(tenant)
        rules = [rule_of_node(node) for node in nodes]
        found = tuple(one for one in rules if one is not None)
        idle = tuple(
            _mention_of(node) for node, rule in zip(nodes, rules, strict=True) if rule is None and node.type == "guardrail"
        )
        if dropped == self._dropped:  # otherwise a rule may have been written since it was read
            self._kept.pop(tenant, None)
            while len(self._kept) >= _TENANTS:
                del self._kept[next(iter(self._kept))]
            self._kept[tenant] = (time.monotonic() + _SECONDS, found, idle)
        return found, idle

    def drop(self, tenant: str) -> None:
        """Forget a tenant's rules: one of them was written."""
        self._dropped += 1
        self._kept.pop(tenant, None)

    def drop_all(self) -> None:
        """Forget everything: news may have been missed."""
        self._dropped += 1
        self._kept.clear()

    async def on_constitution_changed(self, news: News, event: ConstitutionChanged) -> None:
        """Forget the rules of a tenant one of whose rules was written, by whatever process."""
        if any(node.type in RULE_TYPES for node in event.nodes):
            self.drop(news.tenant)
