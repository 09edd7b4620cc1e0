"""The logic of the memory service, without stores and without transport."""
