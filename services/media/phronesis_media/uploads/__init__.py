"""Uploads: their formats, their bucket, and their handlers."""
