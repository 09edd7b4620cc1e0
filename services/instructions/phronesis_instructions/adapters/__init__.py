"""The outside of the instructions service: its content files and its tables."""
