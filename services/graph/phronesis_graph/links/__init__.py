"""Users' knowledge items in the graph, and the links between them."""
