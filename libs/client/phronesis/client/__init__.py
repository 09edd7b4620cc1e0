"""The Python SDK of Phronesis and the `phronesis` command."""
