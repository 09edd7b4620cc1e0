"""What runs in the processes that take foreign bytes apart."""
