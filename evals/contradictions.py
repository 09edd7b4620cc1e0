"""How many contradicting pairs of goals are found, and how many consistent ones are taken for contradictions.

python -m evals.contradictions --half tune          one line for each kind of pair, and the sums
python -m evals.contradictions --half tune --list   the pairs that were judged wrongly, too
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from phronesis_embedding.local import MiniLm
from phronesis_memory.constitution.contradictions import FLOOR, find_reason

SETS = Path(__file__).parent / "sets" / "contradictions"


@dataclass(frozen=True)
class Judged:
    """A pair with its right answer and what was found."""

    id: str
    how: str
    contradict: bool
    cosine: float
    because: tuple[str, str] | None

    @property
    def wrong(self) -> bool:
        return self.contradict != (self.because is not None)


def judge(pairs: Sequence[Mapping[str, Any]], model: MiniLm) -> list[Judged]:
    """Each pair as two goals of a graph would be compared: by their vectors first, and then by their words."""
    found = []
    for pair in pairs:
        one, other = ("\n".join(map(str, pair[side].values())) for side in "ab")
        [x], [y] = (model.run([model.tokens(f"GOAL\n{text}")]) for text in (one, other))
        cosine = float(x @ y)
        because = find_reason(one, other, cosine) if cosine >= FLOOR else None
        found.append(Judged(pair["id"], pair["how"], pair["contradict"], cosine, because))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m evals.contradictions", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", choices=("tune", "held"), required=True)
    parser.add_argument("--list", action="store_true", help="list what was judged wrongly")
    asked = parser.parse_args(arguments)
    pairs = yaml.safe_load((SETS / f"{asked.half}.yaml").read_text("utf-8"))["pairs"]
    judged = judge(pairs, MiniLm(1))
    total, told = (
        Counter((one.contradict, one.how) for one in judged),
        Counter((one.contradict, one.how) for one in judged if one.because),
    )
    for contradict, how in sorted(total, reverse=True):
        print(
            f"{'found' if contradict else 'false alarms':13} {how:14} {told[contradict, how]:3} of {total[contradict, how]:3}"
        )
    for contradict, name in ((True, "found"), (False, "false alarms")):
        print(
            f"{name:13} {'all':14} {sum(n for (kind, _), n in told.items() if kind is contradict):3} of "
            f"{sum(n for (kind, _), n in total.items() if kind is contradict):3}"
        )
    if asked.list:
        for one in judged:
            if one.wrong:
                print(f"{one.id} {one.how} {one.cosine:.2f} {one.because or 'not found'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
