"""What went wrong, in words for people, and what to do about it."""

from __future__ import annotations

import htpy as h

from phronesis_contracts.orchestrator import Problem

_WHAT_TO_DO = {
    "unauthorized": "Sign in again. If the key is refused, ask an administrator for a new one.",
    "forbidden": "This key may not do that. Sign in with another key, or ask an administrator.",
    "insufficient_scope": "This key may only read. Sign in with a key that may write.",
    "not_found": "It was deleted, or it is not yours. Choose another conversation on the left.",
    "busy": "Too many of your turns are still running. Wait until one has ended, then send it again.",
    "too_many_requests": "Wait a few seconds, then do it again.",
    "unavailable": "A part of the platform is away. Wait a few seconds, then do it again: nothing is done twice.",
    "timed_out": "A part of the platform is slow. Do it again: nothing is done twice.",
    "too_large": "Send a shorter message.",
    "bad_request": "Change the message or the name of the agent, then send it again.",
    "turn_expired": "The turn took too long. Send the question again, or ask for less at once.",
    "constitution.guardrail": "Change it so that it keeps the rule; or, if it is meant, name the rule by its id and save it.",
    "constitution.refused": "Change what the message names, then save again.",
    "conflict": "Somebody else changed it in the meantime. Open it again, then change it.",
    "internal": "Do it again. If it fails again, show an administrator the turn's trace.",
}
_ELSE = "Do it again. If it fails again, show an administrator this message."


def fault(problem: Problem) -> h.Element:
    """A problem as a note that says what to do."""
    return h.div(".fault", role="alert", data_code=problem.code)[
        h.p[h.strong[problem.detail or problem.code.replace("_", " ")]],
        h.p[advice(problem)],
        h.p[h.a(href="/console")["To the sign-in"]] if problem.code == "unauthorized" else None,
    ]


def advice(problem: Problem) -> str:
    """What to do about a problem."""
    said = _WHAT_TO_DO.get(problem.code, _ELSE)
    return f"{said} It is worth trying in {problem.retry_after:.0f} s." if problem.retry_after else said
