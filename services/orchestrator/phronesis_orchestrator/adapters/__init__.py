"""Where the orchestrator meets Postgres, the other services and language models."""
