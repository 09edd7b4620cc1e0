"""The stages of a turn: each a small function with a typed input and output."""
