"""Pages of the constitutional graph: its layers, its nodes and what is around them, the workload, and forms to change it."""

from .handlers import router

__all__ = ["router"]
