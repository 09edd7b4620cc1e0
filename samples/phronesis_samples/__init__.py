"""Sample data: a portfolio of projects, the constitution of an institute, generated twins."""
