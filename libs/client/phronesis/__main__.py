"""`python -m phronesis` is the command `phronesis`."""

from .cli import main

if __name__ == "__main__":
    main()
