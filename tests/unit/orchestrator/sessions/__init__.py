"""Sessions, workloads and calendars, without a store and without a bus."""
