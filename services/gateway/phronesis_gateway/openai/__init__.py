"""The interface that programs made for OpenAI's API use: agents as models, chats, responses, files, and vectors of texts."""

from .files import EMBEDDINGS, FILES, MAX_EMBEDDINGS
from .handlers import router

__all__ = ["EMBEDDINGS", "FILES", "HEADERS", "MAX_EMBEDDINGS", "router"]

_STAINLESS = ("Arch", "Helper-Method", "Lang", "OS", "Package-Version", "Retry-Count", "Runtime", "Runtime-Version", "Timeout")
HEADERS = (*("OpenAI-Beta", "OpenAI-Organization", "OpenAI-Project"), *(f"X-Stainless-{name}" for name in _STAINLESS))
"""What OpenAI's own clients send beside the usual; a browser asks first whether it may."""
