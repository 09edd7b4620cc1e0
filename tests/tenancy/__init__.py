"""The long run of random calls by another tenant."""
