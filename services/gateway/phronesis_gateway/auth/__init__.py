"""Who asks, and what they may do: keys, tokens of an identity provider, tickets, scopes and rates."""
