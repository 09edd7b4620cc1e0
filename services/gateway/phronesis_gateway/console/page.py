"""The pages.

Signing in, the conversation with its list at the side, and what went wrong in words for people; their files come from this
machine alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import htpy as h
from starlette.responses import FileResponse, Response

from phronesis_contracts import NotFound, Principal
from phronesis_contracts.constitution.values import READERS
from phronesis_contracts.orchestrator import Conversation, ConversationPage, Problem, Turn

from .answer import render_answer, render_markdown

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
_OTHERWISE = "Do it again. If it fails again, show an administrator this message."


def render_fault(problem: Problem) -> h.Element:
    """A problem as a note that says what to do."""
    return h.div(".fault", role="alert", data_code=problem.code)[
        h.p[h.strong[problem.detail or problem.code.replace("_", " ")]],
        h.p[advice(problem)],
        h.p[h.a(href="/console")["To the sign-in"]] if problem.code == "unauthorized" else None,
    ]


def advice(problem: Problem) -> str:
    said = _WHAT_TO_DO.get(problem.code, _OTHERWISE)
    return f"{said} It is worth trying in {problem.retry_after:.0f} s." if problem.retry_after else said


_OWN = Path(__file__).parent / "assets"
_TYPES = {"console.js": "text/javascript", "console.css": "text/css", "icon.svg": "image/svg+xml"}
_CHARTS = "plotly.min.js"
_FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}


def asset_url(name: str) -> str:
    """Where a file is; another version of it is elsewhere, so that a browser keeps each for good."""
    return f"/console/assets/{name}?v={_version(name)}"


def asset_response(name: str) -> Response:
    """A file by its name. Raises `NotFound`: the pages have no such file."""
    if name == _CHARTS:
        # Found without importing the package, which costs seconds and is not needed.
        path = distribution("plotly").locate_file(f"plotly/package_data/{name}")
        return FileResponse(str(path), media_type="text/javascript", headers=_FOR_GOOD)
    if name not in _TYPES:
        raise NotFound("there is no such file")
    return FileResponse(_OWN / name, media_type=_TYPES[name], headers=_FOR_GOOD)


@cache
def _version(name: str) -> str:
    if name == _CHARTS:
        return distribution("plotly").version
    return hashlib.sha256((_OWN / name).read_bytes()).hexdigest()[:12]


KNOWN_AGENTS = ("dialogue", "noor", "maestro")
"""Suggested; any other agent is talked to by its name."""


def sign_in_page(note: h.Node = None) -> h.Element:
    form = h.form(".sign-in", method="post", action="/console/sign-in")[
        h.h1["Phronesis"],
        note,
        h.label(for_="key")["Your key"],
        h.input("#key", name="key", type="password", autocomplete="off", required=True, autofocus=True, placeholder="phr_…"),
        h.button(type="submit")["Sign in"],
        h.p(".note")["The key is checked and not kept. You are signed out after eight hours, or after one hour without use."],
    ]
    return _page("Sign in", h.main[form], signed_in=False)


def problem_page(found: Problem) -> h.Element:
    """The page in place of one that cannot be shown."""
    if found.code == "unauthorized":
        return sign_in_page(h.p(".note")["You are not signed in, or your session is over."])
    return _page("Problem", h.main[render_fault(found), h.a(href="/console")["To the console"]], signed_in=False)


def console_page(who: Principal, listed: ConversationPage, shown: Conversation | None, turns: Iterable[h.Node]) -> h.Element:
    """The page of a conversation, or of one that is about to begin."""
    return _page(
        "Console",
        _header(who),
        h.div(".columns")[
            h.nav("#conversations", aria_label="Conversations")[conversation_list(listed)],
            h.main[h.div("#messages", aria_label="Messages", role="log")[turns], _composer(shown)],
        ],
        h.dialog("#trace", aria_label="Trace of a turn")[h.form(method="dialog")[h.button["Close"]], h.div("#trace-inside")],
        signed_in=True,
    )


def conversation_list(listed: ConversationPage) -> h.Fragment:
    return h.fragment[
        h.a(".new", href="/console")["New conversation"],
        h.ul[
            (
                h.li[
                    h.a(href=f"/console/conversations/{each.conversation_id}")[each.title or "(no words)"],
                    h.span(".note")[f"{each.agent} · {each.updated_at:%d %b %H:%M}"],
                    h.form(".delete", method="post", action=f"/console/conversations/{each.conversation_id}/delete")[
                        h.button(type="submit", aria_label=f"Delete {each.title or 'conversation'}")["Delete"]
                    ],
                ]
                for each in listed.conversations
            )
        ],
        h.a(href=f"/console?cursor={listed.next}")["Older"] if listed.next else None,
    ]


def user_message(text: str) -> h.Element:
    return h.article(".said")[h.p[text]]


def agent_message(text: str) -> h.Element:
    """What an agent wrote in a turn that is no longer there."""
    return h.article(".turn")[h.div(".text")[render_markdown(text)]]


def render_turn(turn: Turn) -> h.Element:
    """A turn: its reply, its problem, or that it goes on."""
    id = turn.turn_id
    if not turn.status.ended:
        return h.article(".turn.open", data_view=f"/console/turns/{id}", data_events=f"/console/turns/{id}/events")[
            h.p(".progress", role="status")[f"The turn is {turn.status}."],
            h.p(".preview"),
            h.button(".stop", type="button", data_stop=f"/console/turns/{id}/cancel")["Stop"],
        ]
    inside: h.Node
    if turn.reply is not None:
        inside = render_answer(turn.reply)
    elif turn.problem is not None:
        inside = render_fault(turn.problem)
    else:
        inside = h.p[f"The turn was {turn.status}."]
    return h.article(".turn", data_turn=id, data_conversation=turn.conversation_id)[
        h.p(".agent")[turn.agent],
        inside,
        h.button(".open-trace", type="button", data_trace=f"/console/turns/{id}/trace")["Trace"],
    ]


def plain_page(who: Principal, title: str, *inside: h.Node) -> h.Element:
    """A page for somebody who is signed in, under the same header and without a script."""
    return _page(title, _header(who), *inside, signed_in=False)


def _header(who: Principal) -> h.Element:
    return h.header[
        h.a(href="/console")["Phronesis"],
        h.a(href="/console/constitution")["Constitution"] if who.acts_as(READERS) else None,
        h.span(".who")[f"{who.user} · {who.tenant} · {who.rights}"],
        h.form(method="post", action="/console/sign-out")[
            h.button(type="submit", name="everywhere", value="yes", title="In every browser")["Sign out everywhere"],
            h.button(type="submit")["Sign out"],
        ],
    ]


def _composer(shown: Conversation | None) -> h.Element:
    agent = shown.agent if shown else KNOWN_AGENTS[0]
    return h.form("#composer", data_conversation=shown.conversation_id if shown else None)[
        h.label(for_="agent")["Agent"],
        h.input("#agent", list="agents", value=agent, required=True, maxlength="64", readonly=shown is not None),
        h.datalist("#agents")[(h.option(value=each) for each in KNOWN_AGENTS)],
        h.label(for_="text")["Message"],
        h.textarea("#text", rows="2", required=True, placeholder="Enter sends, Shift+Enter begins a line"),
        h.button("#send", type="submit")["Send"],
        h.noscript[h.p(".fault")["The console needs JavaScript; it runs its own alone."]],
    ]


def _page(title: str, *inside: h.Node, signed_in: bool) -> h.Element:
    return h.html(lang="en")[
        h.head[
            h.meta(charset="utf-8"),
            h.meta(name="viewport", content="width=device-width, initial-scale=1"),
            h.title[f"{title} · Phronesis"],
            h.link(rel="icon", href=asset_url("icon.svg")),
            h.link(rel="stylesheet", href=asset_url("console.css")),
            [h.script(src=asset_url(each), defer=True) for each in ("plotly.min.js", "console.js")] if signed_in else None,
        ],
        h.body[inside],
    ]
