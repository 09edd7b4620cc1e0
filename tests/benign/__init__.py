"""Ordinary work, which has to need no more approvals than before there was a policy of actions."""
