"""The HTTP server, what surrounds every request, and the form of requests and responses."""
