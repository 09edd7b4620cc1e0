"""Conversations: their history, their summaries, their pages, and their deletion."""
