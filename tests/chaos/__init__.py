"""Chaos: services and servers are killed at every durable step of a turn, and the promise is held against the rows."""
