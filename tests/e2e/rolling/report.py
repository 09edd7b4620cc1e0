"""The report of a long run, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from tests.support.mixed import PARTS
from tests.support.previous import NAMED

from .run import Outcome, Rolled
from .truth import FIELD

Row = Sequence[object]


def report(outcome: Outcome, seed: int, minutes: float) -> str:
    """What was done, what was found."""
    held, commit = outcome.held, NAMED.read_text().strip()[:12]
    parts = [
        "# Rolling restart report",
        "",
        f"Made by `python -m tests.e2e.rolling --minutes {minutes:g} --seed {seed}`: {len(PARTS)} processes, two of each",
        "service, under one supervisor; `phronesis restart` replaces one after the other, from one mixture of versions to",
        f"another. The version before is commit `{commit}`, whose turns have no `{FIELD}`. Clients use the SDK through a proxy",
        "that gives each connection to the next gateway, and one of them writes by the bus. In every second restart three",
        "processes are killed with -9, while they stop or when they have just been started. The model is a scripted one.",
        "",
        *_table(("what", "figure"), _figures(outcome)),
        *_table(
            ("our writes", "due", "missing", "twice"),
            ((name, of.due, of.missing, of.twice) for name, of in held.found.writes.items()),
        ),
        *_table(("restart", "processes", "of the version before at its end", "seconds", "killed"), _restarts(outcome.rolled)),
        *(f"- {fault}" for fault in (*held.wrong, *held.found.disorders)),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _figures(outcome: Outcome) -> Iterable[Row]:
    held, quiet = outcome.held, [rolled for rolled in outcome.rolled if not rolled.killed]
    found = held.found
    yield "restarts of all services", len(outcome.rolled)
    yield "processes stopped in order and replaced", sum(rolled.replaced for rolled in outcome.rolled)
    yield "processes killed meanwhile", sum(len(rolled.killed) for rolled in outcome.rolled)
    yield "minutes in all", f"{outcome.seconds / 60:.1f}"
    yield "seconds of a restart of twelve processes, median", f"{median(rolled.seconds for rolled in outcome.rolled):.0f}"
    yield "connections of clients to the gateways", outcome.connections
    yield "event streams that ended with a gateway, and were resumed by the SDK at any other", outcome.resumed
    yield "turns accepted", found.accepted
    yield "ended with a reply", found.ended_with_reply
    yield "of these, marked as made without a part (`degraded`)", found.degraded
    yield "parked, failed, not ended", f"{found.parked}, {found.failed}, {found.not_ended}"
    yield "replies lost", found.replies_lost
    yield "replies doubled", found.replies_doubled
    yield "journalled model calls made again without a lost result", found.unexplained_calls
    yield "events of turns", held.events
    yield "events missing, repeated, or different from the truth", f"{held.missing}, {held.repeated}, {held.unlike}"
    yield f"turn-ended events with `{FIELD}`, and without it", f"{held.with_field}, {held.without_field}"
    yield "nodes written to the graph by HTTP and by the bus, each once", held.nodes
    yield "calls that the SDK gave up, in restarts without kills", sum(len(rolled.failures) for rolled in quiet)
    yield "the same, in restarts with kills; each was repeated with its key", _failures(outcome.rolled)


def _failures(rolled: Sequence[Rolled]) -> int:
    return sum(len(one.failures) for one in rolled if one.killed)


def _restarts(rolled: Sequence[Rolled]) -> Iterable[Row]:
    for number, one in enumerate(rolled, 1):
        yield number, one.replaced, len(one.previous), f"{one.seconds:.0f}", ", ".join(one.killed) or "none"


def _table(head: Sequence[str], rows: Iterable[Row]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return [*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows), ""]
