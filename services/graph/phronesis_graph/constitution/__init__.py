"""The constitutional graph in this service: its records, the rules of its writes, its lists and its walks."""
