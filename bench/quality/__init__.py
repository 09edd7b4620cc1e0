"""Recall quality: how often the right item stands among the first ones, by each signal alone and by both together."""
