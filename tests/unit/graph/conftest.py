from __future__ import annotations

import pytest

from phronesis_graph.guard import Guard
from phronesis_graph.twin.ontology_file import load


@pytest.fixture(scope="session")
def guard() -> Guard:
    """A guard with its parser loaded."""
    result = Guard(load())
    result.load()
    return result
