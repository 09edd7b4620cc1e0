"""The agents' interface: the catalog's tools and the agents themselves, by the Model Context Protocol at `/mcp`."""
