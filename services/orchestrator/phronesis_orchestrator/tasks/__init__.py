"""Background tasks: a goal decomposed into waves of steps, worked off under a budget, and told in a report."""
