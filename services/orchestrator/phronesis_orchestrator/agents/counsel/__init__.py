"""Turns of the agents of the constitutional graph: discuss, decisions, execute and mind."""
