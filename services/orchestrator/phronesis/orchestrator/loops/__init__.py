"""The loops that agents run; a profile names one of them."""

from .router import run_router

LOOPS = {"router": run_router}
"""Loop by the name that a profile states."""

__all__ = ["LOOPS", "run_router"]
