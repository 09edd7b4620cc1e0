"""The sample of a small institute: a constitution worth reading, with the days of today."""

from __future__ import annotations

from datetime import UTC, date, datetime
from importlib.resources import files

import yaml

from phronesis.constitution.files import Constitution, parse


def sample(today: date | None = None) -> Constitution:
    """The institute's 45 nodes, with its days moved to `today` (of this machine where absent)."""
    text = files(__package__).joinpath("institute.yaml").read_text("utf-8")
    return parse(yaml.safe_load(text), today or datetime.now(UTC).date())
