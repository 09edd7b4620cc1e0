"""Which stack a client talks to."""

from __future__ import annotations

from pathlib import Path

import pytest

from phronesis import Client
from phronesis.endpoint import Endpoint, find
from phronesis_contracts import BadRequest, Unavailable

LOCAL = "http://127.0.0.1:4000"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory of a local stack, and an environment that names nothing."""
    for name in ("URL", "KEY", "DATA"):
        monkeypatch.delenv(f"PHRONESIS_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "url").write_text(f"{LOCAL}/\n")
    (tmp_path / "key").write_text("phr_local\n")
    return tmp_path


def _who(endpoint: Endpoint) -> tuple[str, str | None]:
    return endpoint.url, endpoint.key


def test_a_directory_gives_its_address_and_its_key(data: Path) -> None:
    assert _who(find(None, None, data)) == (LOCAL, "phr_local")


def test_a_stated_address_goes_before_everything(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHRONESIS_URL", "https://env.example")
    assert _who(find("https://said.example/", "k", data)) == ("https://said.example", "k")


def test_a_stated_directory_goes_before_the_environment(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHRONESIS_URL", "https://env.example")
    monkeypatch.setenv("PHRONESIS_KEY", "of-another-stack")
    assert _who(find(None, None, data)) == (LOCAL, "phr_local")


def test_the_environment_names_a_stack(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHRONESIS_DATA", str(data))
    assert _who(find(None, None, None)) == (LOCAL, "phr_local")
    monkeypatch.setenv("PHRONESIS_URL", "https://env.example")
    monkeypatch.setenv("PHRONESIS_KEY", "k")
    assert _who(find(None, None, None)) == ("https://env.example", "k")


def test_without_anything_it_is_the_stack_in_the_home_directory(data: Path) -> None:
    home = data / "home" / ".phronesis"
    home.mkdir(parents=True)
    (home / "url").write_text(LOCAL)
    assert _who(find(None, None, None)) == (LOCAL, None)


def test_no_stack_says_how_to_start_one(data: Path) -> None:
    with pytest.raises(Unavailable, match="phronesis up"):
        find(None, None, None)


@pytest.mark.parametrize("url", ["ftp://example.org", "example.org", "http://", "http://127.0.0.1:abc"])
def test_what_is_no_address_is_refused(data: Path, url: str) -> None:
    with pytest.raises(BadRequest):
        find(url, None, None)


def test_a_key_is_not_shown_when_an_endpoint_is_printed() -> None:
    assert "secret" not in repr(Endpoint(LOCAL, "secret"))


@pytest.mark.parametrize(
    ("url", "local"),
    [(LOCAL, True), ("http://[::1]:1", True), ("http://localhost:1", True), ("https://example.org", False)],
)
def test_only_this_machine_is_reached_without_a_proxy(url: str, local: bool) -> None:
    assert Endpoint(url).is_local is local


@pytest.mark.parametrize("key", ["ключ", "a\nb", "x" * 300])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(BadRequest) as caught:
        Client(LOCAL, key)
    assert caught.value.field == "key"
