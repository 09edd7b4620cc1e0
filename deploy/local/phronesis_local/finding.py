"""What a look at one thing found."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Finding(BaseModel):
    """One thing that was looked at."""

    model_config = ConfigDict(frozen=True)

    what: str
    found: str
    ok: bool = True
    remedy: str = ""
    """What to do where it is not ok."""
