"""Language models: the ports to whatever thinks, prompts, calls, and what an answer parses to."""
