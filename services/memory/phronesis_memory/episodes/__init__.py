"""What was lived through: episodes, what came of tools, strategies, and the tool that asks a memory about them."""
