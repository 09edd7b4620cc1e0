"""Outside MCP servers: registered and pinned by administrators, their tools called for agents."""
