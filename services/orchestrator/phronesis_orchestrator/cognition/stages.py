"""What the stages of every turn share in a process: their settings, the memory they ask, and what they keep."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..importance import Scoring
from ..settings import CognitionSettings
from .kept import KeptRecords
from .ports import Experience, NoExperience
from .recent import RecentPasts


@dataclass(frozen=True)
class Cognition:
    """One of it for a process."""

    settings: CognitionSettings = field(default_factory=CognitionSettings)
    experience: Experience = field(default_factory=NoExperience)
    records: KeptRecords = field(default_factory=KeptRecords)
    pasts: RecentPasts = field(default_factory=RecentPasts)

    @property
    def scoring(self) -> Scoring:
        """How much a past turn matters, by the settings."""
        return Scoring(openers=self.settings.sentence_openers)
