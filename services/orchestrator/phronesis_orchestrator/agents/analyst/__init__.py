"""The analyst without a language model: it answers from the twin by rules, and declines what it does not understand."""
