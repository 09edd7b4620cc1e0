"""The constitutional graph in the memory service: its vectors, their history, and what is found with them."""
