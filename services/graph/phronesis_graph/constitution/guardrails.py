"""The rules of a tenant's graph: parsed and never run as code, read once, and cached until one of them is written."""

from __future__ import annotations

import operator
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, Protocol

from phronesis_bus import News
from phronesis_contracts.constitution.insight import RuleHit
from phronesis_contracts.constitution.registry import TYPES, Kind
from phronesis_contracts.constitution.values import ConstitutionNode, Mention
from phronesis_contracts.constitution.writes import ConstitutionChanged, GuardrailHit

from .ports import ConstitutionRules

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
_WORD = re.compile(r"\w+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ed", "es", "s", "ly", "y", "e")
_STEM = 3
"""Letters that a word keeps, whatever its ending."""
TEXT_FIELDS = frozenset({"title", "summary", "description", "properties"}) | {
    one.name for kind in TYPES.values() for one in kind.properties if one.kind in (Kind.TEXT, Kind.TEXTS)
}
"""Fields whose words count."""
_STOP = frozenset(
    "a an and any are as at be been before but by can do does done for from had has have if in into is it its may more must no"
    " nor not of off on or our out over shall should so such than that the their them then there these they this those to too"
    " under until up was we were when where which while who will with without would you your any all someone something".split()
)


@dataclass(frozen=True)
class Subject:
    """What is held against the rules."""

    fields: Mapping[str, Any]
    """As messages have them; `roi.total` is found inside `roi`, and what the type does not declare inside `properties`."""
    texts: tuple[str, ...]

    @cached_property
    def stems(self) -> frozenset[str]:
        return find_stems("\n".join(self.texts))


class Trigger(Protocol):
    """What a rule watches for."""

    def because(self, subject: Subject) -> str | None:
        """Why it goes off, or `None` where it does not."""

    def reads(self, changed: frozenset[str]) -> bool:
        """Whether a change of these fields could set it off."""


@dataclass(frozen=True)
class Words:
    """All of these words stand in the texts, in whatever form and order."""

    words: tuple[str, ...]

    def because(self, subject: Subject) -> str | None:
        there = subject.stems
        return f"it speaks of {', '.join(self.words)}" if all(_cut_ending(word) in there for word in self.words) else None

    def reads(self, changed: frozenset[str]) -> bool:
        """Any text may hold a word."""
        return bool(changed & TEXT_FIELDS)


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
        """Its own field alone sets it off, or the bag that holds it."""
        return bool(changed & {self.path.split(".")[0], "properties"})


@dataclass(frozen=True)
class Comparisons:
    """All of these comparisons hold."""

    parts: tuple[Comparison, ...]

    def because(self, subject: Subject) -> str | None:
        found = [part.because(subject) for part in self.parts]
        return " and ".join(one for one in found if one) if all(found) else None

    def reads(self, changed: frozenset[str]) -> bool:
        """Any of them may have been the last to hold."""
        return any(part.reads(changed) for part in self.parts)


def parse_trigger(text: str) -> Trigger | None:
    """What a trigger says: `effortHours > 40 and type = task`, or else plain words; `None` where it says nothing."""
    text = text.strip()[:_LONGEST]
    if (parts := _parse_comparisons(text)) is not None:
        return Comparisons(parts)
    words = tuple(dict.fromkeys(word for word in _WORD.findall(_fold(text)) if word not in _STOP))
    return Words(words) if words else None


def find_stems(text: str) -> frozenset[str]:
    return frozenset(_cut_ending(word) for word in _WORD.findall(_fold(text)))


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


def _fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


@lru_cache(maxsize=10_000)
def _cut_ending(word: str) -> str:
    """A word without its ending, so that its forms meet; whether that is a word of the language does not matter."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM:
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > _STEM and word[-1] == word[-2] else word


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

    def hit(self, subject: Subject) -> RuleHit | None:
        because = self.trigger.because(subject)
        if because is None:
            return None
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
    texts = [content.get(name) for name in ("title", "summary", "description")]
    for one in kind.properties if kind else ():
        value = content.get(one.name)
        texts += value if one.kind is Kind.TEXTS and value else [value]
    texts += (content.get("properties") or {}).values()
    known = {"type": kind.name, "layer": kind.layer.value} if kind else {}
    return Subject({**content, **known}, (*more, *(text for text in texts if isinstance(text, str))))


def find_hits(rules: Iterable[Rule], of: Subject, changed: frozenset[str] | None = None) -> tuple[RuleHit, ...]:
    """The rules that something goes against, those that block first.

    Args:
        changed: fields that a change touches; a rule that reads none of them was answered when they were written.
    """
    asked = (one for one in rules if changed is None or one.trigger.reads(changed))
    found = [hit for one in asked if (hit := one.hit(of)) is not None]
    return tuple(sorted(found, key=lambda hit: hit.severity != "block"))


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


class RuleCache:
    def __init__(self, source: ConstitutionRules) -> None:
        self._source = source
        self._kept: dict[str, tuple[float, tuple[Rule, ...], tuple[Mention, ...]]] = {}
        self._dropped = 0

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
