"""The long-term memory of LangGraph graphs in Phronesis."""

from .store import PhronesisStore

__all__ = ["PhronesisStore"]
