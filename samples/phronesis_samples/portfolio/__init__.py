"""The UK government's major projects, 2020 to 2023, as a twin."""

from .reports import batches

TEXTS = ("aims",)
"""A text that most projects have: once memory finds it, it has read the reports."""

__all__ = ["TEXTS", "batches"]
