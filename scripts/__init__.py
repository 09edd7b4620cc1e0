"""Programs that keep the repository in order; run as modules from its root."""
