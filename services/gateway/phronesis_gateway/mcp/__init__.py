"""The agents' face: the catalog's tools and the agents themselves, by the Model Context Protocol at `/mcp`."""

from .face import Face
from .resource import PATH, Named, protected_resource

HEADERS = ("Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id")
"""Headers that a page's agent sends."""

__all__ = ["HEADERS", "PATH", "Face", "Named", "protected_resource"]
