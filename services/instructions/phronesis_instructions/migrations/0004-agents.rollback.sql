-- Loses the agents that tenants made, with all their versions. Conversations with them stay, and cannot be gone on with.
DROP TABLE agent_versions;
