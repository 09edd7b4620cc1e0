"""The media service."""
