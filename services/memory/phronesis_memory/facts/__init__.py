"""Memory that forms itself: single facts of a user, each with its sources and the time in which it held."""
