"""What is checked after every deployment: seven steps, any of which fails the whole (O-449 to O-456)."""
