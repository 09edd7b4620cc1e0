"""The media service: uploads, and their text."""
