"""Mutations of the guard: every small change of its source must be noticed by the corpora of tests/guard.

`python -m tests.mutation` tries all of them, in a few minutes, and lists those that nobody noticed.
"""
