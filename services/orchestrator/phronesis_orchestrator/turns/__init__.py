"""Turns: accepted, queued, claimed, run and ended."""
