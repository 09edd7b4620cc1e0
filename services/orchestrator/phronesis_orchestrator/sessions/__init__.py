"""What a session begins with: the constitution's foundation and vision, the workload, and the calendars behind it."""
