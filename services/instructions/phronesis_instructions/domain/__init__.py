"""The rules of the instructions: what the texts are, how they are released, and who is told which."""

from .agents import AgentContent
from .ordering import replaces
from .texts import Text

__all__ = ["AgentContent", "Text", "replaces"]
