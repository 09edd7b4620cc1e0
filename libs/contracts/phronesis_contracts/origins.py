"""Where texts come from, and how far they are trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from .messages import Message

MAX_LABELS = 20
"""Labels that are kept of one value; of more, those of a kind are put together."""


class OriginKind(StrEnum):
    """Who, or what, a text comes from."""

    USER = "user"
    """The user's own message, or a call that they made themselves."""
    INSTRUCTIONS = "instructions"
    """The tenant's instructions."""
    MEMORY = "memory"
    """What was formed from the user's own words."""
    PERSON = "person"
    """Somebody else's text, such as a memory that several people share."""
    DOCUMENT = "document"
    PICTURE = "picture"
    RECORDING = "recording"
    TOOL = "tool"
    """A tool's result; also its name and its description, where it is not one of the system's own."""
    OUTSIDE = "outside"
    """A result or a description of an outside MCP server."""
    WEB = "web"
    CLIENT = "client"
    """What a program adds to a user's message: system messages, tools, and what its tools gave."""
    UNKNOWN = "unknown"
    """From before origins were kept."""


TRUSTED = frozenset({OriginKind.USER, OriginKind.INSTRUCTIONS, OriginKind.MEMORY})
"""Kinds whose texts may ask for something to be done. Texts of all others are data."""


class Label(Message):
    """One origin of a value. A value that was derived from others has the labels of all of them."""

    kind: OriginKind
    """Who, or what, it comes from."""
    id: str = Field(default="", max_length=200)
    """The medium, the tool, the server or the turn; empty where there is none, or several."""
    name: str = Field(default="", max_length=300)
    """The same as a person knows it: `invoice.pdf`."""

    @property
    def trusted(self) -> bool:
        return self.kind in TRUSTED


UNKNOWN = (Label(kind=OriginKind.UNKNOWN),)
"""The labels of what says nothing of its origin."""


def merge_labels(*labels: Iterable[Label]) -> tuple[Label, ...]:
    """All labels once, in order; of more than `MAX_LABELS`, one for each kind, without the rest of what they say."""
    merged = tuple(dict.fromkeys(label for group in labels for label in group))
    if len(merged) <= MAX_LABELS:
        return merged
    return tuple(Label(kind=kind) for kind in dict.fromkeys(label.kind for label in merged))


def labels_for_row(labels: Iterable[Label]) -> list[dict[str, str]]:
    """Labels as a store keeps them."""
    return [label.model_dump(mode="json", exclude_defaults=True) for label in labels]


def labels_from_row(stored: Iterable[Mapping[str, str]] | None) -> tuple[Label, ...]:
    """The labels of a row, or of several put together."""
    return merge_labels(map(Label.model_validate, stored or ()))


class Kept(Message):
    """Base of requests that keep something for later turns."""

    labels: SkipJsonSchema[tuple[Label, ...]] = Field(default=(), max_length=MAX_LABELS)
    """Where it comes from. The orchestrator alone states it, of what an agent keeps: a person's call is their own word, and
    nothing that they state here counts."""


def formed(labels: Iterable[Label]) -> tuple[Label, ...]:
    """The labels of what memory forms of texts with these: those that are not trusted, or else that it is the user's own."""
    return merge_labels(untrusted(labels)) or (Label(kind=OriginKind.MEMORY),)


def untrusted(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Those of them whose texts may ask for nothing."""
    return tuple(label for label in labels if not label.trusted)


def without_labels(value: Any) -> Any:
    """A message as JSON without the labels of its parts."""
    if isinstance(value, dict):
        return {name: without_labels(one) for name, one in value.items() if name != "labels" or not _are_labels(one)}
    return [without_labels(one) for one in value] if isinstance(value, list) else value


def _are_labels(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and "kind" in one for one in value)
