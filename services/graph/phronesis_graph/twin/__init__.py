"""The twin: typed nodes and relationships, checked against an ontology, and questions over them."""
