"""The UK government's major projects, 2020 to 2023, as a twin."""

from .reports import batches

__all__ = ["batches"]
