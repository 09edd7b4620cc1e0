"""Which of the two models of the settings answers a tier; the only place that joins tiers and models (V-T02)."""

from __future__ import annotations

from collections.abc import Mapping

from .thought import LIGHT, Tier


def models(light: str, deep: str) -> Mapping[Tier, str]:
    """The model of each tier.

    Args:
        light: the setting `light_model`.
        deep: the setting `model`.
    """
    return {tier: light if tier in LIGHT else deep for tier in Tier}
