"""Every call of the gateway's API: method, path, parameters, and what the answer parses to."""

from .account import create_bus_key, create_key, list_keys, ready, revoke_key
from .conversations import delete_conversation, get_conversation, get_deletion, list_conversations
from .ledger import explain_turn, get_limits, get_usage, replay_turn, set_limit
from .parts import checked
from .profile import delete_profile, get_profile, put_profile, update_profile
from .tools import call_tool, forget, forget_memory, keep_memory, list_tools, recall, recall_memory, remember
from .turns import cancel_turn, get_turn, list_turns, retry_turn, send, submit, trace, upload

__all__ = [
    "call_tool",
    "cancel_turn",
    "checked",
    "create_bus_key",
    "create_key",
    "delete_conversation",
    "delete_profile",
    "explain_turn",
    "forget",
    "forget_memory",
    "get_conversation",
    "get_deletion",
    "get_limits",
    "get_profile",
    "get_turn",
    "get_usage",
    "keep_memory",
    "list_conversations",
    "list_keys",
    "list_tools",
    "list_turns",
    "put_profile",
    "ready",
    "recall",
    "recall_memory",
    "remember",
    "replay_turn",
    "retry_turn",
    "revoke_key",
    "send",
    "set_limit",
    "submit",
    "trace",
    "update_profile",
    "upload",
]
