"""The graph service."""
