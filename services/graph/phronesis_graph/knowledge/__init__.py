"""The agents' own knowledge in the graph."""
