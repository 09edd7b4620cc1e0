"""Turns of the agents of the constitutional graph: discuss, decisions, execute and mind."""

from .turn import counsel

__all__ = ["counsel"]
