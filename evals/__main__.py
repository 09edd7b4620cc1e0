"""Ask question sets on a running stack, judge the replies by code, and report.

python -m evals --set portfolio --half tune --failures failures.jsonl     the local stack, one set, what was not right
python -m evals --url URL --key KEY --report report.md                    all sets on any stack that holds the data
python -m evals --own                                                     a stack of its own, loaded for it (make evals)
python -m evals --set twins --seed 7 --seed 8                             generated ontologies and data of these seeds
python -m evals tasks --own                                               background tasks in worlds of their own (--help)
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from . import items, report, stack, tasks, twins
from .client import Client, StackError
from .run import Record, run

REPORT = Path(__file__).parents[1] / "docs" / "generated" / "evals.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module; the exit status: 0 if everything that was chosen ran, whatever the answers were."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["tasks"]:
        return tasks.main(words[1:])
    given = _parser().parse_args(words)
    chosen = given.set or list(items.NAMES)
    try:
        with tempfile.TemporaryDirectory(prefix="phronesis-evals-") as folder:
            if not given.own:
                return _evaluate(given, chosen, stack.find(given.url, given.key, given.data), Path(folder))
            with stack.running(Path(folder)) as started:
                return _evaluate(given, chosen, started, Path(folder))
    except (StackError, OSError) as exc:
        print(exc, file=sys.stderr)
        return 1


def _evaluate(given: argparse.Namespace, chosen: list[str], where: stack.Stack, folder: Path) -> int:
    records: list[Record] = []
    skipped: list[str] = []
    if given.own and {"portfolio", "unanswerable"} & set(chosen):
        stack.load_portfolio(where)
    for name in chosen:
        if name != "twins":
            some = _chosen(items.load(name, given.half), given)
            names = items.names(name)
            with Client(where.url, where.key, given.patience) as client:
                records += run(client, some, names, given.workers, _told(name))
            continue
        for seed in given.seed or [1, 2]:
            try:
                twin = twins.load(where, seed, folder)
            except twins.NotLoadedError as exc:
                skipped.append(f"twin of seed {seed}: {exc}")
                print(f"skipped: {skipped[-1]}", file=sys.stderr)
                continue
            some = _chosen([item for item in twin.items if given.half in (None, item.half)], given)
            with Client(where.url, twin.key, given.patience) as client:
                records += run(client, some, twin.names, given.workers, _told(f"twins {seed}"))
    print(report.summary(records))
    if given.failures:
        given.failures.write_text(report.failures(records), "utf-8")
    target = given.report or (REPORT if given.own else None)
    if target:
        target.write_text(report.markdown(records, _head(skipped)), "utf-8")
        print(target)
    return 0


def _chosen(some: list[items.Item], given: argparse.Namespace) -> list[items.Item]:
    """With the agents that were asked for, and not more than wanted."""
    found = [items.for_agents(item, given.agent) for item in some] if given.agent else some
    found = [item for item in found if item.agents and (not given.id or item.id in given.id)]
    return found[: given.limit] if given.limit else found


def _told(name: str) -> Callable[[int, int], None]:
    """Says from time to time how far a set is."""

    def tell(done: int, whole: int) -> None:
        if done % 25 == 0 or done == whole:
            print(f"{name}: {done} of {whole}", file=sys.stderr, flush=True)

    return tell


def _head(skipped: list[str]) -> list[str]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return [
        f"Written by `make evals` at commit `{commit or 'unknown'}`.",
        "How to read it: [evaluate answers](../how-to/evaluate-answers.md).",
        "The half `held` is not looked at while answers are tuned; what it asks is not shown anywhere.",
        *(f"Skipped: {line}." for line in skipped),
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evals", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", help="address of a gateway; the local stack's by default")
    parser.add_argument("--key", help="a key that may make keys for users of its tenant; the local stack's own by default")
    parser.add_argument("--data", type=Path, help="data directory of a local stack; ~/.phronesis by default")
    parser.add_argument(
        "--own", action="store_true", help="start a stack in a temporary directory, load it, and stop it afterwards"
    )
    parser.add_argument("--set", action="append", choices=items.NAMES, help="a set; may be given again; all by default")
    parser.add_argument("--half", choices=items.HALVES, help="one half; both by default")
    parser.add_argument("--agent", action="append", help="only this agent; may be given again")
    parser.add_argument(
        "--seed", action="append", type=int, help="seed of a generated twin; may be given again; 1 and 2 by default"
    )
    parser.add_argument("--id", action="append", help="only the item of this id; may be given again")
    parser.add_argument("--limit", type=int, help="items of a set at most")
    parser.add_argument("--workers", type=int, default=2, help="conversations at a time (2)")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds that a turn may take (120)")
    parser.add_argument("--report", type=Path, help="file for the whole report, in Markdown")
    parser.add_argument("--failures", type=Path, help="file for what was not right in the tuning half, in JSON lines")
    return parser


if __name__ == "__main__":
    sys.exit(main())
