"""The instructions service: what agents are told, and how they run."""
