"""The graph of the how-to and the example of the README, with a scripted model, on a running stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Repeating(BaseChatModel):
    """A chat model that answers with the notes that it is given."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *args: Any, **how: Any) -> ChatResult:
        notes = str(messages[0].content).partition("\n")[2]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(notes or "I know nothing of it."))])


def test_a_graph_remembers_in_one_thread_what_was_said_in_another(run_page: Callable[..., str]) -> None:
    assert run_page("docs/how-to/langgraph.md", model=Repeating()) == "I take my coffee black.\n"


def test_what_the_readme_shows_runs(run_page: Callable[..., str]) -> None:
    stored, found = run_page("integrations/langgraph/README.md").splitlines()
    assert stored == "{'text': 'Takes her coffee black.', 'strength': 3}"
    assert found.endswith("coffee Takes her coffee black.")
