"""Try every mutant of the guard, and list those that nobody noticed."""

from __future__ import annotations

import sys

from .mutants import Mutant, mutants
from .survivors import judged
from .trial import FOLDER, MODULES, Trial


def main(chosen: list[str]) -> int:
    """The number of survivors that are not judged."""
    trial, tried, left = Trial(), 0, list[Mutant]()
    for module in chosen or MODULES:
        survivors = []
        source = (FOLDER / f"{module}.py").read_text(encoding="utf-8")
        if not trial.survives(Mutant(module, 0, "nothing", source)):
            raise SystemExit(f"{module} does not pass the trial unchanged")
        found = list(mutants(module, source))
        for mutant in found:
            if trial.survives(mutant):
                survivors.append(mutant)
        tried += len(found)
        print(f"{module}: {len(found)} mutants, {len(survivors)} survive", flush=True)
        for mutant in survivors:
            why = judged(mutant, _line(mutant))
            print(f"    {mutant.line}: {mutant.change}: {_line(mutant)}" + (f" -- {why}" if why else ""), flush=True)
            if why is None:
                left.append(mutant)
    print(f"{tried} mutants; {len(left)} survive without a reason")
    return len(left)


def _line(mutant: Mutant) -> str:
    return (FOLDER / f"{mutant.module}.py").read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
