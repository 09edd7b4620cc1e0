"""Reading media: the processes that take foreign bytes apart (`process` and its jobs), and the service's side of them."""
