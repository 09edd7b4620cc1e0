"""Images by digest: which ones a file names, and what is written behind their tags."""

from __future__ import annotations

import pytest

from scripts.pin_images import FILES, Unknown, faults, images, pinned, resolve, whole_name
from scripts.tree import ROOT

A, B = (f"sha256:{letter * 64}" for letter in "ab")
COMPOSE = ROOT / "docker-compose.yml"


def test_images_of_ours_and_what_is_built_from_a_stage_are_left_alone() -> None:
    text = f"""\
FROM python:3.11.14-slim-trixie AS builder
FROM python:3.11.14-slim-trixie@{A}
COPY --from=builder /opt /opt
    image: ${{PHRONESIS_REGISTRY:-ghcr.io/phronesis}}/phronesis-gateway:${{PHRONESIS_VERSION:-0.1.0}}
    image: &nats-image nats:2.15.2-alpine
    image: *nats-image
"""
    assert list(images(text)) == [
        ("python:3.11.14-slim-trixie", None),
        ("python:3.11.14-slim-trixie", A),
        ("nats:2.15.2-alpine", None),
    ]


def test_a_digest_is_written_behind_its_tag_and_in_the_place_of_one_from_before() -> None:
    text = f"    image: &n nats:2.15.2-alpine\nFROM a.example/b/c:1@{A} AS d\n"
    after = f"    image: &n nats:2.15.2-alpine@{B}\nFROM a.example/b/c:1@{B} AS d\n"
    digests = {"nats:2.15.2-alpine": B, "a.example/b/c:1": B}
    assert pinned(text, digests) == after
    assert pinned(after, digests) == after


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nats:2", "docker.io/library/nats:2"),
        ("grafana/grafana:12", "docker.io/grafana/grafana:12"),
        ("cr.weaviate.io/semitechnologies/weaviate:1", "cr.weaviate.io/semitechnologies/weaviate:1"),
        ("docker.io/library/nats:2", "docker.io/library/nats:2"),
    ],
)
def test_an_image_is_one_however_much_of_its_name_is_written(image: str, name: str) -> None:
    assert whole_name(image) == name


def test_each_image_is_asked_for_once_and_one_without_an_answer_changes_nothing() -> None:
    asked: list[str] = []

    def ask(image: str) -> str:
        asked.append(image)
        return A

    files = {COMPOSE: "image: nats:2\n", FILES[0]: "FROM docker.io/library/nats:2\n"}
    assert resolve(files, ask) == {"nats:2": A, "docker.io/library/nats:2": A}
    assert asked == ["docker.io/library/nats:2"]

    def silent(image: str) -> str:
        raise Unknown(image)

    with pytest.raises(Unknown):
        resolve(files, silent)


def test_a_tag_that_was_moved_is_a_fault() -> None:
    files = {COMPOSE: f"image: nats:2@{A}\nimage: b/c:1\n"}
    assert faults(files, {"nats:2": A, "b/c:1": B}) == [
        f"docker-compose.yml: b/c:1 is without a digest, and the registry has {B}"
    ]
    assert len(faults(files, {"nats:2": B, "b/c:1": B})) == 2


def test_every_image_from_elsewhere_is_among_those_that_are_pinned_and_one_image_has_one_digest() -> None:
    found: dict[str, set[str | None]] = {}
    for path in FILES:
        for image, digest in images(path.read_text()):
            found.setdefault(whole_name(image), set()).add(digest)
    assert len(found) >= 9
    assert {image: digests for image, digests in found.items() if len(digests) > 1} == {}
