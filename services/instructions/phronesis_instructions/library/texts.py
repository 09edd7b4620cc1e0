"""Texts that agents are told, their versions and allow-lists, and a tenant's library of them.

The platform's, the tenant's own over them, and experiments' arms over both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import phronesis_tokens as tokens
from phronesis_contracts.agents import AgentDefinition
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.instructions import Status, TextInfo

TIER_1 = "tier1_bootstrap"
"""Tag of the text that stands before every prompt of an analyst."""
MODES = "abcd"
"""The data modes, as tags write them."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text by its tag. A bundle is told as it is, an element as part of an answer."""

    tag: str
    kind: Literal["bundle", "element"]
    content: str
    version: str
    status: Status
    tokens: int
    tier: int | None = None
    category: str | None = None
    dependencies: tuple[str, ...] = ()
    use_cases: tuple[str, ...] = ()
    position: int | None = None
    """Its place among the texts that a bundle is made of."""
    own: bool = False
    """Whether it is a tenant's own, over the platform's."""

    @property
    def active(self) -> bool:
        """Whether it may be told to anybody."""
        return self.status == "active"

    def wrapped(self) -> str:
        """It as an element of an answer."""
        return f'<element name="{self.tag}">\n{self.content}\n</element>'

    def info(self) -> TextInfo:
        return TextInfo(
            tag=self.tag,
            kind=self.kind,
            tier=self.tier,
            category=self.category,
            version=self.version,
            status=self.status,
            tokens=self.tokens,
            dependencies=self.dependencies,
            use_cases=self.use_cases,
            own=self.own,
        )


def mode_tag(mode: str) -> str:
    return f"tier2_mode_{mode.lower()}"


def preface_tag(mode: str) -> str:
    """Tag of what the bundle of a mode begins with."""
    return f"{mode_tag(mode)}/preface"


def combine_parts(preface: str, parts: Sequence[str]) -> str:
    """A mode's bundle: what is said of the mode, then the steps and definitions in their order."""
    return "\n\n".join((preface, *parts))


def platform_bundle(tag: str, content: str, version: str, category: str) -> Text:
    """An active bundle of the platform, with its tokens counted."""
    return Text(tag, "bundle", content, version, "active", tokens.count(content), category=category)


def replaces(version: str, digest: str, last: tuple[str, str] | None) -> bool:
    """Whether content is to be released over what is there. An older version never is: in a rolling update the old copies
    would otherwise take the new texts back.

    Args:
        version: of what the files hold.
        digest: of the same.
        last: version and digest of what was released last; `None` before the first release.
    """
    if last is None:
        return True
    return digest != last[1] and version_numbers(version) >= version_numbers(last[0])


def version_numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, which compare as versions do."""
    return tuple(int(part) for part in version.split("."))


def next_version(version: str) -> str:
    """The version whose third number is one higher."""
    major, minor, patch = version_numbers(version)
    return f"{major}.{minor}.{patch + 1}"


PURPOSE = "allow_list"
"""The file that holds it, and the last part of its tag."""
_LINE = re.compile(r"^- (\S+)", re.M)
_SERVER = re.compile(r"outside\.(\*|[a-z][a-z0-9-]{0,19})")
"""A line for the accepted tools of one outside MCP server, or of all."""


def allowed_tools(text: str) -> tuple[str, ...]:
    """The names of tools in an allow-list, in its order."""
    return tuple(dict.fromkeys(name for name in _LINE.findall(text) if not _SERVER.fullmatch(name)))


def allowed_servers(text: str) -> tuple[str, ...]:
    """The outside MCP servers in an allow-list, `*` for all: its lines `outside.<server>`."""
    found = (_SERVER.fullmatch(name) for name in _LINE.findall(text))
    return tuple(dict.fromkeys(server[1] for server in found if server))


def unknown_tools(text: str) -> list[str]:
    return [name for name in allowed_tools(text) if name not in TOOLS]


def is_allow_list(tag: str) -> bool:
    return tag.endswith(f"/{PURPOSE}")


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
        return frozenset(tag for arm in self.arms for tag in arm.texts)

    def text(self, arm: str, tag: str) -> str | None:
        """What an arm is told in place of a text; `None` where it is told what everybody is."""
        return next((one.texts.get(tag) for one in self.arms if one.name == arm), None)


@dataclass(frozen=True, slots=True)
class OwnAgent:
    """A version of an agent that a tenant made of a packaged one."""

    number: int
    definition: AgentDefinition
    by: str
    """The user who published it."""
    at: datetime
    note: str = ""
    active: bool = True


@dataclass(frozen=True, slots=True)
class Overlay:
    """A tenant's active release, running experiments and own agents: one moment of them."""

    number: int = 0
    texts: Mapping[str, Text] = field(default_factory=dict)
    experiments: tuple[Running, ...] = ()
    agents: Mapping[str, OwnAgent] = field(default_factory=dict)
    """The active version of each, by name."""


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
        """Elements of tiers 2 and 3 as asked, each followed by what it depends on, none twice."""
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
        content = combine_parts(preface.content, [step.content for step in steps])
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
