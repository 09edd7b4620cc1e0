"""The pages: signing in, and the conversation with its list at the side."""

from __future__ import annotations

from collections.abc import Iterable

import htpy as h

from phronesis_contracts import Principal
from phronesis_contracts.constitution.values import READERS
from phronesis_contracts.orchestrator import Conversation, ConversationPage, Problem, Turn

from .answer import answer
from .assets import url
from .errors import fault
from .texts import markdown

KNOWN_AGENTS = ("dialogue", "noor", "maestro")
"""Suggested; any other agent is talked to by its name."""


def sign_in(note: h.Node = None) -> h.Element:
    """The page that asks for a key."""
    form = h.form(".sign-in", method="post", action="/console/sign-in")[
        h.h1["Phronesis"],
        note,
        h.label(for_="key")["Your key"],
        h.input("#key", name="key", type="password", autocomplete="off", required=True, autofocus=True, placeholder="phr_…"),
        h.button(type="submit")["Sign in"],
        h.p(".note")["The key is checked and not kept. You are signed out after eight hours."],
    ]
    return _page("Sign in", h.main[form], signed_in=False)


def problem(found: Problem) -> h.Element:
    """The page in place of one that cannot be shown."""
    if found.code == "unauthorized":
        return sign_in(h.p(".note")["You are not signed in, or your session is over."])
    return _page("Problem", h.main[fault(found), h.a(href="/console")["To the console"]], signed_in=False)


def console(who: Principal, listed: ConversationPage, shown: Conversation | None, turns: Iterable[h.Node]) -> h.Element:
    """The page of a conversation, or of one that is about to begin."""
    return _page(
        "Console",
        _header(who),
        h.div(".columns")[
            h.nav("#conversations", aria_label="Conversations")[conversations(listed)],
            h.main[h.div("#messages", aria_label="Messages", role="log")[turns], _composer(shown)],
        ],
        h.dialog("#trace", aria_label="Trace of a turn")[h.form(method="dialog")[h.button["Close"]], h.div("#trace-inside")],
        signed_in=True,
    )


def conversations(listed: ConversationPage) -> h.Fragment:
    """The list at the side."""
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


def said(text: str) -> h.Element:
    """What the person wrote."""
    return h.article(".said")[h.p[text]]


def heard(text: str) -> h.Element:
    """What an agent wrote in a turn that is no longer there."""
    return h.article(".turn")[h.div(".text")[markdown(text)]]


def turn_view(turn: Turn) -> h.Element:
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
        inside = answer(turn.reply)
    elif turn.problem is not None:
        inside = fault(turn.problem)
    else:
        inside = h.p[f"The turn was {turn.status}."]
    return h.article(".turn", data_turn=id, data_conversation=turn.conversation_id)[
        h.p(".agent")[turn.agent],
        inside,
        h.button(".open-trace", type="button", data_trace=f"/console/turns/{id}/trace")["Trace"],
    ]


def plain(who: Principal, title: str, *inside: h.Node) -> h.Element:
    """A page for somebody who is signed in, under the same header and without a script."""
    return _page(title, _header(who), *inside, signed_in=False)


def _header(who: Principal) -> h.Element:
    return h.header[
        h.a(href="/console")["Phronesis"],
        h.a(href="/console/constitution")["Constitution"] if who.role in READERS else None,
        h.span(".who")[f"{who.user} · {who.tenant} · {who.role}"],
        h.form(method="post", action="/console/sign-out")[h.button(type="submit")["Sign out"]],
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
            h.link(rel="icon", href=url("icon.svg")),
            h.link(rel="stylesheet", href=url("console.css")),
            [h.script(src=url(each), defer=True) for each in ("plotly.min.js", "console.js")] if signed_in else None,
        ],
        h.body[inside],
    ]
