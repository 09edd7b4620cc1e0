"""The trace of an answer, kept while it is made, and the replay of a turn from it."""
