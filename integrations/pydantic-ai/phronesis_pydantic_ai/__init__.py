"""Memory tools and message histories of Pydantic AI in Phronesis."""

from .capability import PhronesisMemory
from .history import PhronesisHistory

__all__ = ["PhronesisHistory", "PhronesisMemory"]
