"""What OpenAI's SDK can ask for is named in the documentation, supported or not."""

from __future__ import annotations

import re

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.embedding_create_params import EmbeddingCreateParams
from openai.types.file_create_params import FileCreateParams

from scripts.tree import DOCS

_PAGE = (DOCS / "reference" / "openai-api.md").read_text()


@pytest.mark.parametrize("params", [CompletionCreateParamsBase, EmbeddingCreateParams, FileCreateParams])
def test_the_page_says_of_each_parameter_of_the_sdk_what_becomes_of_it(params: type) -> None:
    """A new version of the SDK that can ask for more fails here, until somebody decides about it."""
    named = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`\n]+)`", _PAGE)))) | set(re.findall(r"(\w+)=", _PAGE))
    assert set(params.__annotations__) - named == set()
