"""Turns: handed in, waited for and streamed, and the conversations that they belong to."""
