"""The ledger of model calls, and the limits that it is held to."""
