"""A rolling restart under load, in which two versions work side by side."""
