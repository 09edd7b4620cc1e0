"""A tenant's own twin from files."""
