"""Contracts of the constitutional graph (seed 003): its registry, and every message about its nodes."""
