"""The instructions service."""
