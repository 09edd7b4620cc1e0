"""What stands around a turn's work: tone, intent, the signals for it, a short plan of it, and a look back at what was written.

Code decides the order, the limits and what is dropped; a model is asked as a worker, and code goes on without it (V-001).
"""
