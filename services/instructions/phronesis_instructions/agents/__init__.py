"""The agents that tenants make of packaged ones: their rules, their versions, and what a turn is given of them."""
