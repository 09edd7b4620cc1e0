"""Sessions of the OpenAI Agents SDK in Phronesis, and a tool that searches what was said in all of them."""

from .session import PhronesisSession
from .tools import search_tool

__all__ = ["PhronesisSession", "search_tool"]
