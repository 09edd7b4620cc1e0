"""The report of a long chaos run, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median, quantiles

from tests.support.production import STORES

from .cuts import Watched
from .kills import Kill
from .run import Outcome

Row = Sequence[object]


def report(outcome: Outcome, watched: Watched, seed: int, paused: bool, away: float, back: float) -> str:
    """What was done, what was found."""
    parts = [
        "# Chaos report",
        "",
        f"Made by `make chaos` on the {STORES} stores (seed {seed}). Each kill hits one process, while turns wait at a",
        "durable step, before or after its commit, or in the middle of work that commits nothing (`tests/chaos/gates.py` and",
        "`kills.py` say how). The model is a scripted one that chooses retrieval for every question; pictures and recordings",
        "are read by the engines on the machine. The job stream was emptied twenty times half-way, with turns on their way.",
        "",
        *_table(("what", "figure"), _figures(outcome, paused, away, back)),
        *_table(("turns of this kind", "accepted"), sorted(outcome.found.kinds.items())),
        *_table(
            ("our writes", "due", "missing", "twice"),
            ((name, of.due, of.missing, of.twice) for name, of in outcome.found.writes.items()),
        ),
        *_table(("killed", "times", "median until all turns had ended", "longest"), _victims(outcome)),
        *_table(("at", "before", "after", "during"), _moments(outcome.kills)),
        f"Kills whose moment did not come within ten seconds: {outcome.missed}.",
        *(f"- {fault}" for fault in outcome.found.disorders),
        "",
        "## Cut event streams",
        "",
        "Readers of running turns lose their connection after a random number of bytes, and reconnect with the id of the",
        "last whole event; one in ten, and all that had none yet, reconnect without. What they assemble is compared with the",
        "broker's stream and the turn's row.",
        "",
        *_table(("what", "figure"), _streams(watched)),
        *(f"- {fault}" for fault in watched.wrong),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _figures(outcome: Outcome, paused: bool, away: float, back: float) -> Iterable[Row]:
    found, took = outcome.found, [seconds for _, seconds in outcome.recovery]
    share = 100 * found.ended_with_reply / max(1, found.accepted)
    yield "kills with -9", len(outcome.kills)
    yield "duration in minutes", f"{outcome.seconds / 60:.1f}"
    yield "turns accepted", found.accepted
    yield "ended with a reply", f"{found.ended_with_reply} ({share:.1f} %)"
    yield "of these, marked as made without a part (`degraded`)", found.degraded
    yield "parked", found.parked
    yield "failed", found.failed
    yield "not ended", found.not_ended
    yield "replies lost", found.replies_lost
    yield "replies doubled", found.replies_doubled
    yield "replies to turns with an attachment", found.attached
    yield "of these, its text is not there and the reply says so", found.attachments_named_unread
    yield "of these, its text is not there and nobody says so", found.attachments_lost
    yield "conversations out of order, or with directives that disagree", len(found.disorders)
    yield "journalled model steps", found.steps
    yield "model calls", found.model_calls
    yield "calls repeated because of a kill between call and journal", found.repeated_calls
    yield "calls repeated for any other reason", found.unexplained_calls
    yield "time from a kill to the end of all turns in flight, median", f"{median(took):.1f} s"
    yield "the same, 95th percentile", f"{quantiles(took, n=20)[-1]:.1f} s"
    yield "the same, longest", f"{max(took):.1f} s"
    yield "orchestrator paused for a minute committed nothing when it woke", "yes" if paused else "NO"
    yield f"broker gone for {away:.0f} s: from its return to the end of a turn, no service restarted", f"{back:.1f} s"


def _streams(watched: Watched) -> Iterable[Row]:
    yield "connections cut", watched.made
    yield from ((f"- {way}", n) for way, n in sorted(watched.cuts.items()))
    yield "in the middle of an event", watched.inside
    yield "kills of the gateway meanwhile", watched.gateway_kills
    yield "connections lost to these kills, or not answered", watched.lost
    yield "turns read", watched.turns
    yield "events published", watched.events
    yield "events missing", watched.missing
    yield "events repeated against the rule, or invented", watched.repeated
    yield "events, texts or ends that differ from the truth", watched.unlike
    yield "other breaches of the rule", len(watched.wrong)
    yield "duration in minutes", f"{watched.seconds / 60:.1f}"


def _victims(outcome: Outcome) -> Iterable[Row]:
    for name, n in sorted(Counter(kill.victim for kill in outcome.kills).items()):
        took = [seconds for kill, seconds in outcome.recovery if kill.victim == name] or [0.0]
        yield name, n, f"{median(took):.1f} s", f"{max(took):.1f} s"


def _moments(kills: Sequence[Kill]) -> Iterable[Row]:
    counts = Counter((kill.point.name, kill.when) for kill in kills)
    for name in dict.fromkeys(kill.point.name for kill in kills):
        yield name, *(counts[name, when] for when in ("before", "after", "during"))


def _table(head: Sequence[str], rows: Iterable[Row]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return [*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows), ""]
