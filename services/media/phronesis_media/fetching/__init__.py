"""Public addresses of the web: which may be fetched, where they lead, and what they give."""
