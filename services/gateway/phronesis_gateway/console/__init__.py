"""The console: pages on which a person signs in with a key, talks to an agent, and sees what its answer rests on."""

from .handlers import router

__all__ = ["router"]
