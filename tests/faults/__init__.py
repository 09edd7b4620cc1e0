"""Every fault of the model and of the stores, one after the other, on a running stack: `python -m tests.faults`."""
