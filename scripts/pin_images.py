"""Name every image from elsewhere by its digest, so that what is run is what was looked at, whoever moves a tag.

python -m scripts.pin_images             ask the registries and write the digests behind the tags
python -m scripts.pin_images --check     fail where an image has no digest, or another one than its tag has now
python -m scripts.pin_images --list      show the images, and ask nobody

The registries are asked by `docker buildx imagetools`; no image is fetched. Digests are those of the index, which holds every
platform. The files are `deploy/Dockerfile`, `docker-compose.yml` and the values of the charts of the stores.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from .tree import ROOT

FILES = (
    ROOT / "deploy" / "Dockerfile",
    ROOT / "docker-compose.yml",
    *sorted((ROOT / "deploy" / "helm" / "phronesis" / "charts").glob("*/values.yaml")),
)
# An image of ours has a version in its place, and is told by its attestation.
_IMAGE = re.compile(
    r"^(?P<before>FROM |\s*image: (?:&[\w-]+ )?)(?P<image>[a-z0-9][a-z0-9./-]*:[\w.-]+)(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.MULTILINE,
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SECONDS = 60

Ask = Callable[[str], str]


class Unknown(Exception):
    """A registry did not say what an image's digest is."""


def images(text: str) -> Iterator[tuple[str, str | None]]:
    """The images that a file names by their tags, each with its digest where it has one."""
    for found in _IMAGE.finditer(text):
        yield found["image"], found["digest"]


def pinned(text: str, digests: Mapping[str, str]) -> str:
    """The file with the digests in their places."""
    return _IMAGE.sub(lambda found: f"{found['before']}{found['image']}@{digests[found['image']]}", text)


def whole_name(image: str) -> str:
    """The image with its registry: one that a chart names whole and compose does not is the same."""
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"


def ask_registry(image: str) -> str:
    """The digest that a tag has now. Raises `Unknown`."""
    command = ["docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", image]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unknown(f"{image}: {error}") from error
    digest = done.stdout.strip()
    if done.returncode or not _DIGEST.fullmatch(digest):
        raise Unknown(f"{image}: {done.stderr.strip() or digest or 'no answer'}")
    return digest


def resolve(files: Mapping[Path, str], ask: Ask) -> dict[str, str]:
    """The digest of each image that the files name; each is asked for once. Raises `Unknown`."""
    asked: dict[str, str] = {}
    found = {}
    for image in sorted({image for text in files.values() for image, _ in images(text)}):
        name = whole_name(image)
        found[image] = asked[name] = asked.get(name) or ask(name)
    return found


def faults(files: Mapping[Path, str], digests: Mapping[str, str]) -> list[str]:
    """Images without a digest, or with another one than their tags have now."""
    return [
        f"{path.relative_to(ROOT)}: {image} is {digest or 'without a digest'}, and the registry has {digests[image]}"
        for path, text in files.items()
        for image, digest in images(text)
        if digest != digests[image]
    ]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a file is not as the registries are")
    parser.add_argument("--list", action="store_true", help="show the images, and ask nobody")
    given = parser.parse_args()
    files = {path: path.read_text() for path in FILES}
    if given.list:
        for path, text in files.items():
            for image, digest in images(text):
                print(f"{path.relative_to(ROOT)}: {image} {digest or 'without a digest'}")
        return
    try:
        digests = resolve(files, ask_registry)
    except Unknown as error:
        sys.exit(f"nothing was changed: {error}")
    if given.check:
        if wrong := faults(files, digests):
            sys.exit("\n".join(wrong))
        return
    for path, text in files.items():
        path.write_text(pinned(text, digests))


if __name__ == "__main__":
    main()
