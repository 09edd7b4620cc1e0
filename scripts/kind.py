"""Install the chart on a cluster of kind, and see a conversation outlive a killed pod and an upgrade.

python -m scripts.kind           build the images, make a cluster, install, ask, kill, upgrade, delete the cluster
python -m scripts.kind --keep    leave the cluster there afterwards

It takes Docker and kubectl, 4 cores, 12 GiB of memory and 30 GB of disk; kind and helm are built where they are missing.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from phronesis import Client
from phronesis_bus.secrets import SIGNERS, make
from phronesis_contracts import ServiceError
from phronesis_contracts.service import SERVICES
from phronesis_local.loopback import LOOPBACK, free_port

from . import helm, tools, turns
from .tree import ROOT

CLUSTER = NAMESPACE = RELEASE = "phronesis"
CONTEXT = f"kind-{CLUSTER}"
IMAGES = (*SERVICES, "operations")
REGISTRY = "phronesis.example"
"""Of images that were built here: no such host is there, so none can be fetched by mistake."""
FIRST, SECOND = "0.0.1", "0.0.2"
"""Tags of the images before and after the upgrade; both are built from this tree."""
VALUES = helm.VALUES / "small.yaml"
_RESTRICTED = [f"pod-security.kubernetes.io/{mode}=restricted" for mode in ("enforce", "warn")]
_START, _READY, _BUILD = 120, 900, 1_800
"""Seconds until a forwarded port answers, until the cluster or a release is ready, and for one image."""


class Failed(Exception):
    """A step did not succeed; what the step said is on the terminal."""


def run(*command: str | Path, within: float = _READY) -> None:
    """Run a command, shown with its output on this terminal.

    Args:
        command: the command.
        within: seconds that it may take.

    Raises:
        Failed: it failed, or took longer.
    """
    words = [str(word) for word in command]
    print(f"\n$ {' '.join(words)}", flush=True)
    try:
        subprocess.run(words, cwd=ROOT, check=True, timeout=within)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise Failed(str(error)) from error


def kubectl(*arguments: str | Path) -> None:
    """Run kubectl on the cluster and the release's namespace."""
    run("kubectl", "--context", CONTEXT, "--namespace", NAMESPACE, *arguments)


def build(kind: Path) -> None:
    """Build each image from this tree, and give it to the cluster under both tags."""
    for service in IMAGES:
        first, second = (f"{REGISTRY}/phronesis-{service}:{tag}" for tag in (FIRST, SECOND))
        run(
            "docker", "build", "--file", "deploy/Dockerfile", "--build-arg", f"SERVICE={service}", "--tag", first, ".",
            within=_BUILD,
        )  # fmt: skip
        run("docker", "tag", first, second)
        run(kind, "load", "docker-image", "--name", CLUSTER, first, second)


def prepare(secrets: Path) -> None:
    """Make the namespace, which admits pods of the standard `restricted` alone, and the Secret in it."""
    make(secrets)
    kubectl("create", "namespace", NAMESPACE)
    kubectl("label", "namespace", NAMESPACE, *_RESTRICTED)
    trust = [f"--from-file=trust-{signer}.pem={secrets / 'trust' / signer}.pem" for signer in SIGNERS]
    kubectl("create", "secret", "generic", "phronesis", f"--from-file={secrets}", *trust)


def install(tag: str) -> None:
    """Install or upgrade the release to a tag, and return when every pod is ready and the schemas are up to date."""
    where = ("--kube-context", CONTEXT, "--namespace", NAMESPACE)
    images = ("--set", f"image.registry={REGISTRY},image.tag={tag},image.pullPolicy=Never")
    patience = ("--wait", "--wait-for-jobs", "--timeout", f"{_READY}s")
    command = (helm.program(), "upgrade", "--install", RELEASE, helm.CHART, "--values", VALUES, *where, *images, *patience)
    run(*command, within=2 * _READY)


@contextmanager
def client(secrets: Path) -> Iterator[Client]:
    """The platform, through a port that is forwarded to one gateway while the block runs.

    Raises:
        Failed: the gateway does not answer in time.
    """
    port = free_port()
    where = ["--context", CONTEXT, "--namespace", NAMESPACE]
    command = ["kubectl", *where, "port-forward", f"service/{RELEASE}-gateway", f"{port}:80"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as forward:
        try:
            url = f"http://{LOOPBACK}:{port}"
            _wait_for(url)
            with Client(url, (secrets / "gateway.key").read_text().strip()) as made:
                yield made
        finally:
            forward.terminate()


def _wait_for(url: str) -> None:
    limit = time.monotonic() + _START
    while time.monotonic() < limit:
        try:
            if httpx.get(f"{url}/health/ready", timeout=10).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise Failed(f"{url}/health/ready did not answer 200 within {_START} s")


def converse(secrets: Path) -> None:
    """Ask a question; ask it on while the orchestrator is killed; ask it again after an upgrade.

    Raises:
        Harmed: an answer was lost, or was another.
    """
    orchestrator = f"app.kubernetes.io/component=orchestrator,app.kubernetes.io/instance={RELEASE}"
    with client(secrets) as before:
        turns.note(before)
        first = turns.ask(before)
        print(f"\n{first.reply.user_response if first.reply else ''}", flush=True)
        with turns.asking(before) as asked:
            kubectl("delete", "pod", "--selector", orchestrator, "--grace-period=0", "--force")
            kubectl("rollout", "status", f"deployment/{RELEASE}-orchestrator", f"--timeout={_READY}s")
        print(f"\n{len(asked.turns)} turns asked around the kill, all answered; {asked.again} begun again", flush=True)
    install(SECOND)
    with client(secrets) as after:
        kept = after.turns.get(first.turn_id)
        if kept.reply != first.reply:
            raise turns.Harmed(f"after the upgrade, turn {first.turn_id} says {kept.reply}")
        turns.ask(after)
    print("\nthe conversation outlived the upgrade", flush=True)


def describe() -> None:
    """Show what a failed run left in the cluster, as far as it tells."""
    release = f"--selector=app.kubernetes.io/instance={RELEASE}"
    for arguments in (("get", "pods,jobs,events"), ("logs", "--all-containers", "--prefix", "--tail=30", release)):
        try:
            kubectl(*arguments)
        except Failed as error:
            print(error, file=sys.stderr)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the cluster there")
    keep = parser.parse_args().keep
    absent = [program for program in ("docker", "kubectl") if shutil.which(program) is None]
    if absent:
        sys.exit(f"{' and '.join(absent)} must be on PATH")
    try:
        kind = tools.program("kind")
        run(kind, "create", "cluster", "--name", CLUSTER, "--wait", f"{_READY}s")
    except (Failed, tools.Missing) as error:
        sys.exit(str(error))
    try:
        with tempfile.TemporaryDirectory() as folder:
            secrets = Path(folder) / "secrets"
            build(kind)
            prepare(secrets)
            install(FIRST)
            converse(secrets)
    except (Failed, turns.Harmed, ServiceError) as error:
        describe()
        sys.exit(str(error))
    finally:
        if not keep:
            run(kind, "delete", "cluster", "--name", CLUSTER)


if __name__ == "__main__":
    main()
