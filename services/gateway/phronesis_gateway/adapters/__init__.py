"""Real stores behind the gateway's ports."""
