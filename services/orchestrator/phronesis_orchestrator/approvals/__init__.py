"""Approvals: which tool calls wait for a person, and the turns that wait for them."""
