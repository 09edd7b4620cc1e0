"""What the orchestrator counts."""

from __future__ import annotations

from phronesis_bus import Kind, Metric

_LONG = (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 900)

TURNS = Metric(
    "phronesis_turns",
    Kind.COUNTER,
    "Turns that ended, by how; `degraded` is whether the reply was made without a part of it.",
    ("agent", "outcome", "degraded"),
)
CANCELLED = Metric("phronesis_turns_cancelled", Kind.COUNTER, "Turns that their users cancelled, or whose conversation went.")
TURN_SECONDS = Metric(
    "phronesis_turn_seconds", Kind.HISTOGRAM, "Time from acceptance to the end of a turn.", ("agent", "outcome"), _LONG
)
DEGRADED = Metric("phronesis_degraded", Kind.COUNTER, "Replies made without a part, by the part.", ("part",))
STAGE = Metric("phronesis_stage_seconds", Kind.HISTOGRAM, "Time of the phases of a turn (D-148).", ("stage", "outcome"))
STEP = Metric(
    "phronesis_step_seconds",
    Kind.HISTOGRAM,
    "Time of journalled steps; a `known` one was read from the journal and not made again.",
    ("step", "outcome"),
)
RUNNING = Metric("phronesis_turns_running", Kind.GAUGE, "Turns that this process runs.")
SLOTS = Metric("phronesis_turn_slots", Kind.GAUGE, "Turns that this process may run at once.")
OPEN = Metric("phronesis_turns_open", Kind.GAUGE, "Turns that have not ended, in all processes together.", ("status",))
OLDEST = Metric("phronesis_turns_oldest_seconds", Kind.GAUGE, "Age of the oldest turn that waits for a worker.")
COST = Metric(
    "phronesis_model_cost_usd",
    Kind.COUNTER,
    "What calls to models cost by the list of prices; a model that is not in it is not counted.",
    ("model", "purpose"),
)
BREAKER = Metric(
    "phronesis_model_breaker_open",
    Kind.GAUGE,
    "1 while calls to a model are refused here, since it failed again and again.",
    ("model",),
)
BREAKER_STATE = Metric(
    "phronesis_breaker_state",
    Kind.GAUGE,
    "Whether a service or model is asked: 0 as always, 1 by one call at a time, since it failed again and again, 2 not at all.",
    ("dependency",),
)
WAITING = Metric(
    "phronesis_turns_waiting",
    Kind.GAUGE,
    "Turns that were put back since a service or store did not answer, in all processes together.",
    ("dependency",),
)
MODEL_PLANS = Metric(
    "phronesis_model_plans",
    Kind.COUNTER,
    "Plans that a model was asked for, since rules did not understand: `accepted`, `repaired` (accepted after one repair),"
    " `rejected` by what they were held against, `failed` (the call was late or refused), or `none` (no plan says it).",
    ("outcome",),
)
MODEL_PROSE = Metric(
    "phronesis_model_prose",
    Kind.COUNTER,
    "Replies that a model wrote: `accepted`, `repaired`, `rejected` (it contradicted what was found) or `failed`.",
    ("outcome",),
)
INSTRUCTION_TOKENS = Metric(
    "phronesis_instruction_tokens",
    Kind.HISTOGRAM,
    "Tokens of instructions that a turn loaded by tools.",
    ("agent",),
    (500, 1000, 2000, 4000, 6000, 8000, 12000, 16000),
)

STARTS = Metric(
    "phronesis_session_starts",
    Kind.COUNTER,
    "Starts of sessions: `full` with every part, `partial` without one or two, `failed` with none (O-416).",
    ("outcome",),
)
