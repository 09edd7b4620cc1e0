"""Every call of the gateway's API: method, path, parameters, and what the answer parses to."""

from .account import create_key, get_profile, list_keys, put_profile, ready, revoke_key
from .parts import checked
from .tools import call_tool, list_tools, recall, remember
from .turns import cancel_turn, get_conversation, get_turn, list_turns, retry_turn, send, submit, trace, upload

__all__ = [
    "call_tool",
    "cancel_turn",
    "checked",
    "create_key",
    "get_conversation",
    "get_profile",
    "get_turn",
    "list_keys",
    "list_tools",
    "list_turns",
    "put_profile",
    "ready",
    "recall",
    "remember",
    "retry_turn",
    "revoke_key",
    "send",
    "submit",
    "trace",
    "upload",
]
