"""A tenant's own agent: what may be published, how two versions differ, and the profile that a turn runs with."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml

from phronesis_contracts import Forbidden, Principal
from phronesis_contracts.agents import EDITORS, AgentDefinition, AgentRefused, AnswerSource, source_of
from phronesis_contracts.catalog import TOOLS
from phronesis_contracts.instructions import AgentProfile

from ..library.texts import PURPOSE, OwnAgent, Profile, allowed_servers, allowed_tools

_OF_MEMORY = frozenset({"recall", "strategies", "keep"})
"""Stages that read or write memory."""
_OF_CONSTITUTION = frozenset({"session", "rules"})
_OF_BASE_ALONE = frozenset({"greeting", "about"})
"""Phrases in which a packaged agent speaks of itself."""
_OF_ALL_SOURCES = frozenset({"nothing_found", "by_rules", "cannot"})
"""Phrases that name what a packaged agent reads."""
_LINES = 400
"""Lines of a difference that are shown."""


def check_definition(definition: AgentDefinition, packaged: Mapping[str, Profile], who: Principal) -> None:
    """Hold an agent to what there is, and to what the caller may do itself.

    Args:
        packaged: the packaged agents by name.
        who: the caller.

    Raises:
        AgentRefused: it could not work so; `field` is what is at fault.
        Forbidden: the caller may not publish agents, or not use a tool that it lists.
    """
    if not who.writes_as(EDITORS):
        raise Forbidden(f"{who.rights} may not publish agents")
    if definition.name in packaged:
        raise AgentRefused(f"{definition.name} is a packaged agent; choose another name", field="name")
    base = packaged.get(definition.base)
    if base is None:
        raise AgentRefused(
            f"there is no packaged agent {definition.base}; there are {', '.join(sorted(packaged))}", field="based_on"
        )
    if definition.tools is not None:
        _check_tools(definition, packaged, who)


def _check_tools(definition: AgentDefinition, packaged: Mapping[str, Profile], who: Principal) -> None:
    calling = sorted(name for name, one in packaged.items() if PURPOSE in one.prompts)
    if definition.base not in calling:
        detail = f"an agent based on {definition.base} calls no tools; leave them out, or base it on {', '.join(calling)}"
        raise AgentRefused(detail, field="tools")
    lines = _as_list(definition)
    tools = allowed_tools(lines)
    if unknown := [name for name in tools if name not in TOOLS]:
        raise AgentRefused(f"there are no such tools: {', '.join(unknown)}", field="tools")
    if barred := [name for name in tools if not TOOLS[name].open_to(who)]:
        raise Forbidden(f"{who.rights} may not use {', '.join(barred)}, and cannot let an agent use it", field="tools")
    if definition.sources is not None:
        for name in tools:
            source = source_of(TOOLS[name])
            if source is not None and source not in definition.sources:
                raise AgentRefused(f"{name} works on {source}, which is not among the sources", field="tools")


def _as_list(definition: AgentDefinition) -> str:
    return "\n".join(f"- {name}" for name in definition.tools or ())


def make_profile(base: AgentProfile, own: OwnAgent) -> AgentProfile:
    """The profile of an own agent: its base's, with what the definition says in its place."""
    definition = own.definition
    sources = _sources(definition)
    lines = _as_list(definition)
    tools = base.tools if definition.tools is None else allowed_tools(lines)
    return base.model_copy(
        update={
            "agent": definition.name,
            "version": f"{base.version}+{own.number}",
            "based_on": base.agent,
            "stages": tuple(stage for stage in base.stages if stage not in _stages_without(sources)),
            "phrases": _phrases(base.phrases, definition, limited=sources is not None),
            "bootstrap": "\n\n".join(part for part in (base.bootstrap, _own_text(definition)) if part),
            "tools": tools,
            "outside": base.outside if definition.tools is None else allowed_servers(lines),
            "only_tools": definition.tools is not None,
            "sources": sources,
            "model": definition.model,
            "limits": definition.limits,
        }
    )


def _sources(definition: AgentDefinition) -> tuple[AnswerSource, ...] | None:
    """What an agent may answer from: as it states, or what the tools that it lists work on, with what is attached."""
    if definition.sources is not None or definition.tools is None:
        return definition.sources
    read = {source_of(TOOLS[name]) for name in definition.tools if name in TOOLS}
    return tuple(source for source in AnswerSource if source in read | {AnswerSource.DOCUMENTS})


def _stages_without(sources: tuple[AnswerSource, ...] | None) -> frozenset[str]:
    if sources is None:
        return frozenset()
    memory = frozenset() if AnswerSource.MEMORY in sources else _OF_MEMORY
    return memory | (frozenset() if AnswerSource.CONSTITUTION in sources else _OF_CONSTITUTION)


def _phrases(of_base: Mapping[str, str], definition: AgentDefinition, *, limited: bool) -> dict[str, str]:
    left_out = _OF_BASE_ALONE | (_OF_ALL_SOURCES if limited else frozenset())
    about = {"about": definition.description} if definition.description else {}
    kept = {name: text for name, text in of_base.items() if name not in left_out}
    own = {str(name): text for name, text in definition.phrases.items()}
    return {**kept, **about, **own}


def _own_text(definition: AgentDefinition) -> str:
    """The instructions as they stand in a prompt: data of the tenant's administrators, told as such, and never a template."""
    said = "\n\n".join(part for part in (definition.description, definition.instructions.strip()) if part)
    if not said:
        return ""
    before, _, after = _frame().partition("{{instructions}}")
    return f"{before.replace('{{agent}}', definition.name)}{said}{after}".strip()


@cache
def _frame() -> str:
    return (files("phronesis_instructions") / "content" / "own_agent.md").read_text("utf-8").strip()


def changed_fields(before: AgentDefinition | None, after: AgentDefinition) -> tuple[str, ...]:
    """The fields in which a version differs from the one before it."""
    stated = after.model_dump(exclude_defaults=True)
    known = before.model_dump(exclude_defaults=True) if before else {}
    return tuple(name for name in AgentDefinition.model_fields if stated.get(name) != known.get(name))


def diff_definitions(before: AgentDefinition | None, after: AgentDefinition) -> str:
    """The lines in which two versions differ, in the unified form."""
    old, new = ([] if before is None else _lines(before)), _lines(after)
    lines = list(difflib.unified_diff(old, new, "before", "after", lineterm="", n=2))
    return "\n".join([*lines[:_LINES], *(["[cut]"] if len(lines) > _LINES else [])])


def _lines(definition: AgentDefinition) -> list[str]:
    fields = definition.model_dump(mode="json", exclude_defaults=True)
    return yaml.dump(fields, Dumper=_Lines, sort_keys=False, allow_unicode=True, width=120).splitlines()


class _Lines(yaml.SafeDumper):
    """Writes a text of several lines as such."""


_Lines.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)
)
