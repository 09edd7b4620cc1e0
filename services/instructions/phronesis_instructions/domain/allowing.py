"""An agent's allow-list: a text that names its tools, each on a line of its own that begins with a dash (O-229).

It is a text like an agent's prompts, so a tenant publishes its own over the platform's, compares and takes it back with the
same tools, and an experiment may try one.
"""

from __future__ import annotations

import re

from phronesis_contracts.catalog import TOOLS

PURPOSE = "allow_list"
"""The file that holds it, and the last part of its tag."""
_LINE = re.compile(r"^- (\S+)", re.M)
_SERVER = re.compile(r"outside\.(\*|[a-z][a-z0-9-]{0,19})")
"""A line for the accepted tools of one outside MCP server, or of all."""


def allowed(text: str) -> tuple[str, ...]:
    """The names of tools in an allow-list, in its order."""
    return tuple(dict.fromkeys(name for name in _LINE.findall(text) if not _SERVER.fullmatch(name)))


def outside(text: str) -> tuple[str, ...]:
    """The outside MCP servers in an allow-list, `*` for all: its lines `outside.<server>`."""
    found = (_SERVER.fullmatch(name) for name in _LINE.findall(text))
    return tuple(dict.fromkeys(server[1] for server in found if server))


def unknown(text: str) -> list[str]:
    """The names in it that no tool has."""
    return [name for name in allowed(text) if name not in TOOLS]


def lists(tag: str) -> bool:
    """Whether the text of this tag is an allow-list."""
    return tag.endswith(f"/{PURPOSE}")
