"""Constitutions: the sample of a small institute, files, and made-up ones of any size with what is relevant to which question.

made = generate(5_000, seed=1)
made.nodes(), made.relationships()    what to load, made while it is read
made.queries()                        questions with the nodes that answer them
sample()                              45 nodes worth reading, with the days of today
parts(nodes, relationships)           the same as the graph takes it
"""

from __future__ import annotations

from phronesis.constitution.files import Constitution, parts

from .generator import FEWEST, GeneratedConstitution, Query, generate
from .plan import count_layers
from .sample import sample
from .texts import make_families

__all__ = [
    "FEWEST",
    "Constitution",
    "GeneratedConstitution",
    "Query",
    "count_layers",
    "generate",
    "make_families",
    "parts",
    "sample",
]
