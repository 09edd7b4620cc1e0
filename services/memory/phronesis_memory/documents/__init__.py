"""Documents of conversations, in passages: kept, embedded afterwards, and searched in every later turn."""
