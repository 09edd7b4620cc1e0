"""Content files of the package: a folder for each agent, with its profile and its texts in Markdown."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

import yaml

from ..domain import AgentContent


def agents() -> tuple[AgentContent, ...]:
    """The content of every agent, by name.

    Raises:
        ValueError: a file that does not fit what an agent needs.
    """
    folders = (files("phronesis_instructions") / "content" / "agents").iterdir()
    return tuple(_agent(folder) for folder in sorted(folders, key=lambda folder: folder.name) if folder.is_dir())


def _agent(folder: Traversable) -> AgentContent:
    profile = yaml.safe_load((folder / "profile.yaml").read_text("utf-8"))
    directives = folder / "directives"
    content = AgentContent.model_validate(
        {**profile, "prompts": _texts(folder), "directives": _texts(directives) if directives.is_dir() else {}}
    )
    if content.agent != folder.name:
        raise ValueError(f"the folder {folder.name} holds the profile of {content.agent}")
    return content


def _texts(folder: Traversable) -> dict[str, str]:
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".md")), key=lambda file: file.name)
    return {file.name.removesuffix(".md"): file.read_text("utf-8").strip() for file in found}
