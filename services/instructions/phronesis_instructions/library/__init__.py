"""The library: the texts that agents are told, what ships of them, and their handlers."""
