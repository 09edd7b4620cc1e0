"""Learning from ended turns: off the hot path, in batches of one user, by a model or by rules."""
