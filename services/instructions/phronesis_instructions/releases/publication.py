"""What may be published, and what a publication changes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import phronesis_tokens as tokens
from phronesis_contracts.instructions import MAX_CHANGED, NewText, TextChange, Unpublishable

from ..library.texts import (
    MODES,
    TIER_1,
    Library,
    Overlay,
    Text,
    is_allow_list,
    mode_tag,
    next_version,
    preface_of,
    unknown_tools,
    version_numbers,
)

_HOLDER = re.compile(r"\{\{(.*?)\}\}")
_WRAPPER = re.compile(r"</?element\b", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FORMER = "data_mode_definitions"
"""The monolith that tier 2 was made of; it is not to come back."""
_MOST = {TIER_1: 2_400, **{mode_tag(mode): 5_400 for mode in MODES}}
"""Tokens that a text may have: a fifth over what it is meant to have."""
_LINES = 400
"""Lines of a difference that are shown."""


def apply_publication(library: Library, texts: Iterable[NewText]) -> dict[str, Text]:
    """The tenant's own texts after a publication. Raises `Unpublishable`: with every fault there is."""
    own, faults = dict(library.overlay.texts), list[str]()
    for new in texts:
        old = library.overlay.texts.get(new.tag) or library.platform.texts.get(new.tag)
        fault = _refusal(library, new, old)
        if fault is not None:
            faults.append(f"{new.tag}: {fault}")
            continue
        own[new.tag] = _replacement(new, old)
    if len(own) > MAX_CHANGED:
        faults.append(f"a release holds at most {MAX_CHANGED} texts of its own")
    faults += library_faults(Library(library.platform, Overlay(0, own)))
    if faults:
        raise Unpublishable("; ".join(faults))
    return own


def library_faults(library: Library) -> list[str]:
    """Faults of all texts together: what an agent needs is not active, what there is not is depended on, or it is too long."""
    texts = library.all()
    needed = {tag for profile in library.platform.profiles.values() for tag in profile.tags()}
    needed |= {tag for tag, text in library.platform.texts.items() if text.tier == 2 or tag == TIER_1 or text.kind == "bundle"}
    faults = [f"{tag}: agents cannot do without it" for tag in sorted(needed) if tag in texts and not texts[tag].active]
    for tag, text in sorted(texts.items()):
        if lost := [one for one in text.dependencies if one not in texts or not texts[one].active]:
            faults += [f"{tag}: it depends on {', '.join(lost)}, which there is not"] if text.active else []
        if text.tokens > _MOST.get(tag, text.tokens):
            faults.append(f"{tag}: {text.tokens} tokens, where {_MOST[tag]} are the most")
    return faults


def arm_faults(library: Library, arm: str, texts: Mapping[str, str]) -> list[str]:
    """Faults of the texts of one arm of an experiment."""
    faults = []
    for tag, content in texts.items():
        old = library.text(tag, {})
        fault = "there is no such active text" if old is None else _refusal(library, NewText(tag=tag, content=content), old)
        if fault is not None:
            faults.append(f"{arm}/{tag}: {fault}")
    return faults


def compare_texts(before: Mapping[str, Text], after: Mapping[str, Text]) -> tuple[TextChange, ...]:
    """How the second texts differ from the first, by tag."""
    found = []
    for tag in sorted(before.keys() | after.keys()):
        old, new = before.get(tag), after.get(tag)
        if _text_body(old) == _text_body(new):
            continue
        found.append(
            TextChange(
                tag=tag,
                change="added" if old is None else "removed" if new is None else "changed",
                before=old.version if old else None,
                after=new.version if new else None,
                diff=_diff(tag, old, new),
            )
        )
    return tuple(found)


def _refusal(library: Library, new: NewText, old: Text | None) -> str | None:
    if new.tag == _FORMER:
        return "this text was divided into the elements of tier 2"
    if preface_of(new.tag) in library.platform.texts:
        return f"it is made of its parts; publish {preface_of(new.tag)} or an element of tier 2"
    if old is None and new.content is None:
        return "there is no such text, and none is given"
    if old is None and "/" in new.tag:
        return "only elements can be added, and their tags have no slash"
    if old is not None and new.version is not None and version_numbers(new.version) <= version_numbers(old.version):
        return f"its version has to be above {old.version}"
    if new.content is not None and is_allow_list(new.tag) and (lost := unknown_tools(new.content)):
        return f"there are no such tools: {', '.join(lost)}"
    return _fault_of(new.content, old) if new.content is not None else None


def _fault_of(content: str, old: Text | None) -> str | None:
    if not content.strip():
        return "it is blank"
    if _CONTROL.search(content):
        return "it holds control characters"
    if _WRAPPER.search(content):
        return "it is wrapped in an element tag when it is told, so it may not hold one"
    holders = set(_HOLDER.findall(old.content)) if old is not None else set()
    if (given := set(_HOLDER.findall(content))) != holders:
        return f"its placeholders are {sorted(given)}, and have to be {sorted(holders)}"
    return None


def _replacement(new: NewText, old: Text | None) -> Text:
    content = old.content if old is not None and new.content is None else (new.content or "").strip()
    base = old or Text(new.tag, "element", content, "0.9.9", "active", 0, tier=3)
    return replace(
        base,
        content=content,
        tokens=tokens.count(content),
        status=new.status or base.status,
        version=new.version or (next_version(base.version) if old is not None else "1.0.0"),
        dependencies=base.dependencies if new.dependencies is None else new.dependencies,
        use_cases=base.use_cases if new.use_cases is None else new.use_cases,
        own=True,
    )


def _text_body(text: Text | None) -> tuple[object, ...] | None:
    return None if text is None else (text.content, text.status, text.dependencies, text.use_cases)


def _diff(tag: str, old: Text | None, new: Text | None) -> str:
    lines = list(difflib.unified_diff(_lines(old), _lines(new), f"before/{tag}", f"after/{tag}", lineterm="", n=2))
    return "\n".join([*lines[:_LINES], *(["[cut]"] if len(lines) > _LINES else [])])


def _lines(text: Text | None) -> list[str]:
    if text is None:
        return []
    head = [
        f"status: {text.status}",
        f"dependencies: {', '.join(text.dependencies)}",
        f"use_cases: {', '.join(text.use_cases)}",
    ]
    return [*head, "", *text.content.splitlines()]
