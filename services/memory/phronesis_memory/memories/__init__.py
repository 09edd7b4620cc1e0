"""Memory as other programs use it: messages and texts, with their conversations, times and history."""
