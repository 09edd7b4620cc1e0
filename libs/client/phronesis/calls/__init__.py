"""Every call of the gateway's API: method, path, parameters, and what the answer parses to."""
