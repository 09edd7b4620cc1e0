"""The graph stores, over Bolt."""
