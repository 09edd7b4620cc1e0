"""Beside other memories for agents: the same messages stored and asked for, with the same embedder. `python -m bench.peers`."""
