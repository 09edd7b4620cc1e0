"""The Cypher guard: which statements of a model or a caller may be run, and how they are held to one tenant."""

from .grammar import Rules
from .guard import Allowed, Guard

READING = Rules.READING
KNOWLEDGE = Rules.KNOWLEDGE
KNOWLEDGE_WRITING = Rules.KNOWLEDGE_WRITING

__all__ = ["KNOWLEDGE", "KNOWLEDGE_WRITING", "READING", "Allowed", "Guard", "Rules"]
