"""The texts as a tenant's users are told them: the platform's, the tenant's own over them, and experiments' arms over both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import phronesis_tokens as tokens

from .texts import Text, combined


@dataclass(frozen=True, slots=True)
class Profile:
    """How an agent runs, with the tags of its texts."""

    agent: str
    version: str
    loop: str
    stages: tuple[str, ...]
    prompts: dict[str, str]
    directives: dict[str, str]
    phrases: dict[str, str]
    bootstrap: str = ""

    def tags(self) -> tuple[str, ...]:
        """Every text that the agent cannot do without."""
        return (*([self.bootstrap] if self.bootstrap else []), *self.prompts.values(), *self.directives.values())


@dataclass(frozen=True, slots=True)
class Platform:
    """What ships, as it stands in the store: one moment of it."""

    version: str = "0.0.0"
    texts: Mapping[str, Text] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunningArm:
    """An arm of a running experiment, with its texts by tag."""

    name: str
    weight: int
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Running:
    """A running experiment; its arms in their order."""

    name: str
    arms: tuple[RunningArm, ...]

    def tags(self) -> frozenset[str]:
        """Every text that some arm is told otherwise."""
        return frozenset(tag for arm in self.arms for tag in arm.texts)

    def text(self, arm: str, tag: str) -> str | None:
        """What an arm is told in place of a text; `None` where it is told what everybody is."""
        return next((one.texts.get(tag) for one in self.arms if one.name == arm), None)


@dataclass(frozen=True, slots=True)
class Overlay:
    """A tenant's active release and running experiments: one moment of them."""

    number: int = 0
    texts: Mapping[str, Text] = field(default_factory=dict)
    experiments: tuple[Running, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """Texts that were looked up together, in order, and the tags that there are not."""

    texts: tuple[Text, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Library:
    """All texts of one tenant."""

    platform: Platform
    overlay: Overlay = Overlay()

    @property
    def release(self) -> str:
        """The name of what is read: the platform's version, and the number of the tenant's own release where there is one."""
        return f"{self.platform.version}+{self.overlay.number}" if self.overlay.number else self.platform.version

    def all(self) -> dict[str, Text]:
        """Every text by tag, whatever its status. Bundles are made of the parts that this tenant has."""
        merged = {**self.platform.texts, **self.overlay.texts}
        bundles = {tag: self._bundle(text, {}) for tag, text in merged.items() if preface_of(tag) in merged}
        return {**merged, **bundles}

    def touching(self, tags: Iterable[str]) -> tuple[Running, ...]:
        """The running experiments that tell some arm one of these texts otherwise."""
        wanted = self._with_parts(tags)
        return tuple(running for running in self.overlay.experiments if running.tags() & wanted)

    def text(self, tag: str, arms: Mapping[str, str]) -> Text | None:
        """An active text as a user in these arms is told it; `None` where there is none, or it is not active."""
        found = self._own(tag, arms)
        if found is None or not found.active:
            return None
        return self._bundle(found, arms) if self._text(preface_of(tag)) is not None else found

    def elements(self, tags: Iterable[str], arms: Mapping[str, str]) -> Found:
        """Elements of tiers 2 and 3 as asked, each followed by what it depends on, none twice (N-124, N-125)."""
        found: dict[str, Text] = {}
        missing: dict[str, None] = {}
        waiting = list(reversed(list(tags)))
        while waiting:
            tag = waiting.pop()
            if tag in found or tag in missing:
                continue
            text = self.text(tag, arms)
            if text is None or text.kind != "element" or text.tier not in (2, 3) or "/" in tag:  # a slash: an agent's own
                missing[tag] = None
                continue
            found[tag] = text
            waiting += reversed(text.dependencies)
        return Found(tuple(found.values()), tuple(missing))

    def closure(self, tags: Iterable[str]) -> tuple[str, ...]:
        """The tags with those that they depend on: what an experiment may touch when they are asked for."""
        return tuple(text.tag for text in self.elements(tags, {}).texts)

    def _text(self, tag: str) -> Text | None:
        return self.overlay.texts.get(tag) or self.platform.texts.get(tag)

    def _own(self, tag: str, arms: Mapping[str, str]) -> Text | None:
        text = self._text(tag)
        if text is None:
            return None
        for running in self.overlay.experiments:
            told = running.text(arms.get(running.name, ""), tag)
            if told is not None:
                return replace(text, content=told, tokens=tokens.count(told), own=True)
        return text

    def _parts(self, tag: str, arms: Mapping[str, str]) -> tuple[Text, ...]:
        merged = {**self.platform.texts, **self.overlay.texts}
        steps = sorted(
            (text for text in merged.values() if text.tier == 2 and text.active), key=lambda text: text.position or 0
        )
        found = (self._own(one, arms) for one in (preface_of(tag), *(step.tag for step in steps)))
        return tuple(text for text in found if text is not None)

    def _bundle(self, stored: Text, arms: Mapping[str, str]) -> Text:
        preface, *steps = self._parts(stored.tag, arms)
        if not any(part.own for part in (preface, *steps)):
            return stored
        content = combined(preface.content, [step.content for step in steps])
        return replace(stored, content=content, tokens=tokens.count(content), own=True)

    def _with_parts(self, tags: Iterable[str]) -> frozenset[str]:
        wanted = set(tags)
        for tag in list(wanted):
            if self._text(preface_of(tag)) is not None:
                wanted |= {part.tag for part in self._parts(tag, {})}
        return frozenset(wanted)


def preface_of(tag: str) -> str:
    """The tag of the preface that a bundle of this tag would begin with."""
    return f"{tag}/preface"
