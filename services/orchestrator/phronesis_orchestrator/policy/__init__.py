"""The one gate and the one pair of hands: which tool calls of agents are made, and which wait for a person."""
