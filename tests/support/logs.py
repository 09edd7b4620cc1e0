"""What one package logged in a test: a connection of another test may log beside it for a while."""

from __future__ import annotations

import logging

import pytest


def logged(caplog: pytest.LogCaptureFixture, package: str) -> list[logging.LogRecord]:
    """The records of one package of the platform, oldest first."""
    return [record for record in caplog.records if record.name.startswith(f"phronesis_{package}.")]
