"""The loops that agents run; a profile names one of them."""

from .quick import run_quick
from .router import run_router
from .tools import run_tools

LOOPS = {"quick": run_quick, "router": run_router, "tools": run_tools}
"""Loop by the name that a profile states."""

__all__ = ["LOOPS", "run_quick", "run_router", "run_tools"]
