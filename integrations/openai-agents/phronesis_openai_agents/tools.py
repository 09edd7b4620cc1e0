"""Memory as a tool of the OpenAI Agents SDK."""

from __future__ import annotations

from agents import FunctionTool, function_tool

from phronesis import AsyncClient


def search_tool(client: AsyncClient, *, user_id: str | None = None, budget_tokens: int = 500) -> FunctionTool:
    """A tool by which an agent searches all that its user's memory holds, other sessions included.

    Args:
        client: your client.
        user_id: your own name for the user; the key needs the scope `act_for_users`.
        budget_tokens: tokens that an answer may have, 50 to 32,000.
    """

    @function_tool
    async def search_memory(query: str) -> str:
        """Search what was said in earlier conversations with the user, and what is known of them.

        Args:
            query: a question, or a few words.
        """
        found = await client.memory.context(query, budget_tokens=budget_tokens, user_id=user_id)
        return found.text or "Memory holds nothing on this."

    return search_memory
