from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from phronesis_graph.settings import GraphSettings

README = Path(__file__).parents[3] / "services" / "graph" / "README.md"


def test_the_readme_names_every_setting() -> None:
    text = README.read_text(encoding="utf-8")
    assert [name for name in GraphSettings.model_fields if f"`GRAPH_{name.upper()}`" not in text] == []


def test_a_reading_user_without_a_password_is_refused() -> None:
    with pytest.raises(ValidationError, match="go together"):
        GraphSettings(read_user="reader")


@pytest.mark.req("KC-025")
def test_a_password_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame\n")
    login = GraphSettings(user="ann", password_file=tmp_path / "password").login()
    assert login is not None
    assert (login[0], login[1].get_secret_value()) == ("ann", "open sesame")
    assert GraphSettings().login() is None


@pytest.mark.req("K-080", "K-085", "NC-091", "KC-024")
@pytest.mark.parametrize("url", ["bolt://graph.example.com:7687", "neo4j://10.0.0.4:7687", "bolt://[fd00::4]:7687"])
def test_an_address_in_another_network_is_refused_without_encryption(url: str) -> None:
    with pytest.raises(ValidationError, match="in the clear"):
        GraphSettings(url=url)


@pytest.mark.req("K-080", "K-085")
@pytest.mark.parametrize(
    "url",
    [
        "bolt://127.0.0.1:7687",
        "bolt://[::1]:7687",
        "bolt://neo4j:7687",
        "neo4j+s://graph.example.com",
        "bolt+s://10.0.0.4:7687",
    ],
)
def test_an_address_on_this_machine_in_its_network_or_encrypted_is_taken(url: str) -> None:
    assert GraphSettings(url=url).url == url
