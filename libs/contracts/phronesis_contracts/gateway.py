"""Contracts of the gateway: the news that a key was revoked."""

from __future__ import annotations

from .messages import Event, Message


class KeyRevoked(Message):
    """A key that must not be acted for any more."""

    key: str


KEY_REVOKED = Event("gateway.v1.key.revoked", KeyRevoked, followers=("gateway", "orchestrator"))
