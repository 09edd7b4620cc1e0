"""A control plane of Kubernetes: etcd, the API server and the controllers, which admit objects and make pods of them.

There is no node, so no pod is ever placed and no container runs.
"""

from __future__ import annotations

import json
import re
import secrets
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from phronesis_local.layout import inherited_environment
from phronesis_local.loopback import LOOPBACK, free_port, http_status
from phronesis_local.processes import Child, Program
from scripts import helm, tools
from scripts.chart import Object
from tests.support.certificates import Authority

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
_MANAGER = "tests"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def missing() -> list[str]:
    """Programs of the control plane that have not been built here."""
    return [name for name in PROGRAMS if not tools.place(name).exists()]


class Refused(Exception):
    """The API server did not take a request; the text is its reason."""


@dataclass
class Cluster:
    """An API server, as an administrator reaches it.

    Args:
        url: its address.
        http: reaches it with the administrator's rights.
        kubeconfig: a file with which other programs do.
    """

    url: str
    http: httpx.Client
    kubeconfig: Path
    _names: dict[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)

    def get(self, path: str, **parameters: str) -> Object:
        """The answer to a GET.

        Raises:
            Refused: there is no such thing.
        """
        return self._answer(self.http.get(path, params=parameters))

    def items(self, path: str, **parameters: str) -> list[Object]:
        """The objects of a list."""
        found: list[Object] = self.get(path, **parameters)["items"]
        return found

    def find(self, wanted: Object, namespace: str) -> Object:
        """An object of the same kind and name, as it stands.

        Raises:
            Refused: there is none.
        """
        return self.get(self._path(wanted, namespace))

    def apply(self, wanted: Object, namespace: str = "", *, dry_run: bool = False) -> list[str]:
        """Apply an object on the server's side, which refuses fields that it does not know.

        Args:
            wanted: the object.
            namespace: where it goes, if it is of a kind that stands in one.
            dry_run: let it be admitted and not kept.

        Returns:
            What the server warns of.

        Raises:
            Refused: it is not admitted.
        """
        parameters = {"fieldManager": _MANAGER, "fieldValidation": "Strict", "force": "true"}
        answer = self.http.patch(
            self._path(wanted, namespace),
            params=parameters | ({"dryRun": "All"} if dry_run else {}),
            content=json.dumps(wanted),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
        self._answer(answer)
        return _warnings(answer)

    def create_namespace(self, name: str) -> None:
        """A namespace that admits no pod beyond the standard `restricted`, and warns of whatever would make one."""
        levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": levels}})

    def create_pod(self, pod: Object, namespace: str) -> list[str]:
        """Let a pod be admitted, and not kept. Returns what the server warns of.

        Raises:
            Refused: it is not admitted.
        """
        path = f"/api/v1/namespaces/{namespace}/pods"
        answer = self.http.post(path, params={"dryRun": "All", "fieldValidation": "Strict"}, json=pod)
        self._answer(answer)
        return _warnings(answer)

    def _path(self, wanted: Object, namespace: str) -> str:
        version, kind = wanted["apiVersion"], wanted["kind"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if (version, kind) not in self._names:
            for each in self.get(base)["resources"]:
                if "/" not in each["name"]:
                    self._names[version, each["kind"]] = each["name"], each["namespaced"]
        if (version, kind) not in self._names:
            raise Refused(f"the server has no kind {kind} of {version}")
        plural, namespaced = self._names[version, kind]
        where = f"/namespaces/{namespace}" if namespaced else ""
        return f"{base}{where}/{plural}/{wanted['metadata']['name']}"

    def _answer(self, answer: httpx.Response) -> Object:
        if answer.is_error:
            raise Refused(answer.json().get("message", answer.text))
        found: Object = answer.json()
        return found

    def helm(self, *arguments: str, within: float = 120.0) -> helm.Output:
        """Run helm against the cluster.

        Args:
            arguments: what helm is told.
            within: seconds that it may take.
        """
        home = self.kubeconfig.parent / "helm"
        places = {f"HELM_{name}_HOME": str(home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        environment = inherited_environment() | places | {"KUBECONFIG": str(self.kubeconfig)}
        command = [str(helm.program()), *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=within, check=False, env=environment)
        return helm.Output(ran.returncode == 0, ran.stdout, ran.stderr)


def _warnings(answer: httpx.Response) -> list[str]:
    """The texts of `Warning` headers, each of which reads `299 - "text"`."""
    return [text for header in answer.headers.get_list("warning") for text in _QUOTED.findall(header)]


@asynccontextmanager
async def control_plane(folder: Path) -> AsyncIterator[Cluster]:
    """A control plane on free ports of the loopback interface, with its own certificates, for a block.

    Args:
        folder: its data and its logs.
    """
    store, peers, port = free_port(), free_port(), free_port()
    etcd = Child(_etcd(folder, store, peers))
    await etcd.start()
    try:
        await etcd.wait_ready()
        authority, token = Authority(folder / "authority"), secrets.token_hex(16)
        certificate, key = authority.issue(LOOPBACK)
        url = f"https://{LOOPBACK}:{port}"
        trust = ssl.create_default_context(cafile=str(authority.ca_file))
        kubeconfig = _kubeconfig(folder, url, authority.ca_file, token)
        accounts = _accounts_key(folder)
        with httpx.Client(base_url=url, verify=trust, headers={"Authorization": f"Bearer {token}"}, timeout=30) as http:
            server = Child(_apiserver(folder, port, store, (certificate, key), accounts, token, http))
            controllers = Child(_controllers(folder, kubeconfig, accounts, authority.ca_file, http))
            try:
                for child in (server, controllers):
                    await child.start()
                    await child.wait_ready()
                yield Cluster(url, http, kubeconfig)
            finally:
                controllers.kill()
                server.kill()
    finally:
        etcd.kill()


def _etcd(folder: Path, port: int, peers: int) -> Program:
    client, peer = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{peers}"
    options = {
        "name": "etcd",
        "data-dir": str(folder / "etcd"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"etcd={peer}",
        "unsafe-no-fsync": "true",  # what it holds need not outlive it
        "log-level": "warn",
    }

    async def ready() -> bool:
        return await http_status(port, "/health") == 200

    return _program("etcd", folder, options, ready)


def _apiserver(
    folder: Path, port: int, store: int, pair: tuple[Path, Path], accounts: Path, token: str, http: httpx.Client
) -> Program:
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{token},administrator,administrator,"system:masters"\n')
    options = {
        "etcd-servers": f"http://{LOOPBACK}:{store}",
        "bind-address": LOOPBACK,
        "advertise-address": LOOPBACK,
        "endpoint-reconciler-type": "none",  # which would take no loopback address
        "secure-port": str(port),
        "tls-cert-file": str(pair[0]),
        "tls-private-key-file": str(pair[1]),
        "token-auth-file": str(tokens),
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": str(accounts),
        "service-account-signing-key-file": str(accounts),
        "service-cluster-ip-range": "10.96.0.0/16",
    }

    async def ready() -> bool:
        try:
            return http.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    return _program("kube-apiserver", folder, options, ready)


def _controllers(folder: Path, kubeconfig: Path, accounts: Path, authority: Path, http: httpx.Client) -> Program:
    options = {
        "kubeconfig": str(kubeconfig),
        "service-account-private-key-file": str(accounts),
        "root-ca-file": str(authority),
        "leader-elect": "false",
        "secure-port": "0",
    }

    async def ready() -> bool:
        # The first thing that one of them makes, without which no pod is admitted.
        return http.get("/api/v1/namespaces/default/serviceaccounts/default").status_code == 200

    return _program("kube-controller-manager", folder, options, ready)


def _program(name: str, folder: Path, options: Mapping[str, str], ready: Any) -> Program:
    command = [str(tools.program(name)), *(f"--{option}={value}" for option, value in options.items())]
    return Program(name, command, folder / f"{name}.log", inherited_environment(), ready, folder=folder, ready_within=90)


def _accounts_key(folder: Path) -> Path:
    """The key that signs the tokens of service accounts."""
    path = folder / "accounts.key"
    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    return path


def _kubeconfig(folder: Path, url: str, authority: Path, token: str) -> Path:
    path = folder / "kubeconfig"
    named = {
        "clusters": [{"name": "tests", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": "administrator", "user": {"token": token}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "administrator"}}],
    }
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "tests", **named}))
    return path
