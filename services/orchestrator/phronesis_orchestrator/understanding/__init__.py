"""A question becomes one plan, made by rules or by a model; one executor answers it, and one writer says the answer."""
