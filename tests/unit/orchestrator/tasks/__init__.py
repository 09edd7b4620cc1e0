"""Background tasks, without a server."""
