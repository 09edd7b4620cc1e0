"""Every call of the gateway's API: method, path, parameters, and what the answer parses to."""

from .account import create_bus_key, create_key, list_keys, ready, revoke_key
from .approvals import answer_approval, get_approval, list_approvals
from .conversations import delete_conversation, get_conversation, get_deletion, list_conversations
from .facts import forget_for_good, forgetting, import_memory, list_facts, preview_forgetting, recall_facts
from .ledger import explain_turn, get_limits, get_usage, replay_turn, set_limit
from .parts import checked
from .profile import delete_profile, get_profile, put_profile, update_profile
from .tasks import cancel_task, get_task, list_tasks, submit_task
from .tools import call_tool, forget, forget_memory, keep_memory, list_tools, memory_query, recall, recall_memory, remember
from .turns import cancel_turn, get_turn, list_turns, retry_turn, send, submit, trace, upload

__all__ = [
    "answer_approval",
    "call_tool",
    "cancel_task",
    "cancel_turn",
    "checked",
    "create_bus_key",
    "create_key",
    "delete_conversation",
    "delete_profile",
    "explain_turn",
    "forget",
    "forget_for_good",
    "forget_memory",
    "forgetting",
    "get_approval",
    "get_conversation",
    "get_deletion",
    "get_limits",
    "get_profile",
    "get_task",
    "get_turn",
    "get_usage",
    "import_memory",
    "keep_memory",
    "list_approvals",
    "list_conversations",
    "list_facts",
    "list_keys",
    "list_tasks",
    "list_tools",
    "list_turns",
    "memory_query",
    "preview_forgetting",
    "put_profile",
    "ready",
    "recall",
    "recall_facts",
    "recall_memory",
    "remember",
    "replay_turn",
    "retry_turn",
    "revoke_key",
    "send",
    "set_limit",
    "submit",
    "submit_task",
    "trace",
    "update_profile",
    "upload",
]
