"""The matrix as it ships: tier 1, the bundles of the data modes, and the elements of tiers 2 and 3."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

from pydantic import ConfigDict, Field, model_validator

import phronesis_tokens as tokens
from phronesis_contracts import Message
from phronesis_contracts.releases import Tag, Version

from .texts import MODES, TIER_1, Text, bundle, combined, mode_tag, preface_tag


class Element(Message):
    """One element of tier 2 or 3 as a file holds it."""

    model_config = ConfigDict(extra="forbid")

    tag: Tag
    tier: int = Field(ge=2, le=3)
    content: str = Field(min_length=1)
    dependencies: tuple[str, ...] = ()
    use_cases: tuple[str, ...] = Field(min_length=1)


class Matrix(Message):
    """All of it. A fault stops the service at its start, since it ships with the service."""

    model_config = ConfigDict(extra="forbid")

    version: Version
    tier1: str = Field(min_length=1)
    prefaces: dict[str, str]
    """By mode, in lower case."""
    elements: tuple[Element, ...]
    """Those of tier 2 in the order in which bundles hold them."""

    @property
    def name(self) -> str:
        """What a log calls it."""
        return "the matrix"

    @model_validator(mode="after")
    def _whole(self) -> Matrix:
        tags = Counter(element.tag for element in self.elements)
        if doubles := sorted(tag for tag, count in tags.items() if count > 1):
            raise ValueError(f"tags that are there twice: {', '.join(doubles)}")
        if set(self.prefaces) != set(MODES):
            raise ValueError("each of the data modes needs a preface")
        if lost := sorted({tag for element in self.elements for tag in element.dependencies} - set(tags)):
            raise ValueError(f"dependencies that there are not: {', '.join(lost)}")
        return self

    def digest(self) -> str:
        """Hash of all of it; the same content has the same one."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()

    def texts(self) -> tuple[Text, ...]:
        """Every text of it, active, with its tokens counted."""
        return (bundle(TIER_1, self.tier1, self.version, "bootstrap"), *self._bundles(), *self._elements())

    def _bundles(self) -> list[Text]:
        parts = [element.content for element in self.elements if element.tier == 2]
        found = []
        for mode, preface in sorted(self.prefaces.items()):
            found.append(bundle(preface_tag(mode), preface, self.version, "mode_preface"))
            # Modes B and D plan ahead over several steps; A and C answer one thing (N-198).
            category = "mode_strategy" if mode in "bd" else "mode_tactical"
            found.append(bundle(mode_tag(mode), combined(preface, parts), self.version, category))
        return found

    def _elements(self) -> list[Text]:
        return [
            Text(
                element.tag,
                "element",
                element.content,
                self.version,
                "active",
                tokens.count(element.content),
                tier=element.tier,
                dependencies=element.dependencies,
                use_cases=element.use_cases,
                position=place,
            )
            for place, element in enumerate(self.elements, 1)
        ]
