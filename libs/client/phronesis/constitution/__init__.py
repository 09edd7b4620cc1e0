"""Constitutions: the sample of a small institute, files, and made-up ones of any size with what is relevant to which question.

made = generate(5_000, seed=1)
made.nodes(), made.relationships()    what to load, made while it is read
made.queries()                        questions with the nodes that answer them
sample()                              45 nodes worth reading, with the days of today
parts(nodes, relationships)           the same as the graph takes it
"""

from __future__ import annotations

from .asking import Query
from .families import families
from .making import FEWEST, Made, generate
from .packing import parts
from .sample import Constitution, Unreadable, read, sample
from .sizes import layers_of

__all__ = [
    "FEWEST",
    "Constitution",
    "Made",
    "Query",
    "Unreadable",
    "families",
    "generate",
    "layers_of",
    "parts",
    "read",
    "sample",
]
