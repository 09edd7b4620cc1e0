"""See the package."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import generate


def main() -> None:
    """Write one twin."""
    parser = argparse.ArgumentParser(prog="python -m evals.generator", description="Write a generated twin and its questions.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    given = parser.parse_args()
    made = generate(given.seed)
    for file in made.write(given.out):
        print(file)
    print(f"{len(made.raw)} items, {sum(len(item.turns) for item in made.items)} questions")


if __name__ == "__main__":
    main()
