"""One text that agents are told, with all that is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import phronesis_tokens as tokens
from phronesis_contracts.releases import Status, TextInfo

TIER_1 = "tier1_bootstrap"
"""Tag of the text that stands before every prompt of an analyst (N-012)."""
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
        """Whether it may be told to anybody (N-212)."""
        return self.status == "active"

    def wrapped(self) -> str:
        """It as an element of an answer (N-115)."""
        return f'<element name="{self.tag}">\n{self.content}\n</element>'

    def info(self) -> TextInfo:
        """It without its content."""
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
    """Tag of the bundle of a data mode (N-112)."""
    return f"tier2_mode_{mode.lower()}"


def preface_tag(mode: str) -> str:
    """Tag of what the bundle of a mode begins with."""
    return f"{mode_tag(mode)}/preface"


def combined(preface: str, parts: Sequence[str]) -> str:
    """A mode's bundle: what is said of the mode, then the steps and definitions in their order (N-173)."""
    return "\n\n".join((preface, *parts))


def bundle(tag: str, content: str, version: str, category: str) -> Text:
    """An active bundle of the platform, with its tokens counted."""
    return Text(tag, "bundle", content, version, "active", tokens.count(content), category=category)
