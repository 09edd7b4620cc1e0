"""The tools: who may call which, calling them, and their routes."""
