"""Truths, computed from the data files in plain Python and in no way that a service shares."""
