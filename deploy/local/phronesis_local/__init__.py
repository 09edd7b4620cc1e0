"""The embedded stack: real servers and the six services as child processes."""
