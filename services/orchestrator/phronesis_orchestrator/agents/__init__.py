"""Agents: the context of a turn, the loops, the tools that they may call, and the checks of their answers."""
