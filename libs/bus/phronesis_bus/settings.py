"""Where the broker is, who this process is to it, and whom it trusts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

_SECRETS = Path("/run/secrets")


def secrets_dir() -> Path | None:
    """Where a container finds its secrets as files; `None` where there is no such folder.

    A settings class made with it (`_secrets_dir`) takes what no variable says from the file that has the variable's name.
    """
    return _SECRETS if _SECRETS.is_dir() else None


class BusSettings(BaseSettings):
    """Settings with the prefix `BUS_`. Files, not variables, hold what is secret."""

    model_config = SettingsConfigDict(env_prefix="BUS_", env_ignore_empty=True, frozen=True)

    url: str = "nats://127.0.0.1:4222"
    """Address of the NATS server, or several with commas; `tls://` where nothing may go without TLS."""
    password_file: Path | None = None
    """File with this service's NATS password; the NATS user has the service's name."""
    ca_file: Path | None = None
    """PEM file with whom to believe about the server's certificate at `tls://`; the system's own authorities without it."""
    cert_file: Path | None = None
    """PEM file with the certificate that this process shows the server, where it asks for one."""
    key_file: Path | None = None
    """PEM file with the key to that certificate."""
    signing_key_file: Path | None = None
    """PEM file with this service's Ed25519 key, for services that sign principals."""
    trust_dir: Path | None = None
    """Folder with `<issuer>.pem`, the public key of each service whose principals are believed."""
    redelivery_delay: float = 0.5
    """Seconds before the second try of a message; doubled for each further one."""
    redelivery_limit: int = 8
    """Tries after which a message that fails for a reason of its own is parked."""
    ack_wait: float = 30.0
    """Seconds after which the server gives an unanswered message to another consumer."""
    stall_limit: float = 60.0
    """Seconds of a stalled event loop after which the process ends itself, to be started again."""
    replicas: int = Field(default=1, ge=1, le=5)
    """Servers of a cluster that keep a copy of each stream; for the declaring program."""
    metrics_listen: str | None = Field(default=None, pattern=r"^\S+:\d{1,5}$")
    """Host and port where Prometheus reads this process's `/metrics`, such as `0.0.0.0:9464`; port 0 takes a free one.
    `/health/live` and `/health/ready` are answered there too."""

    @model_validator(mode="after")
    def _tls_or_not(self) -> Self:
        addresses = [address.startswith("tls://") for address in self.url.split(",")]
        if any(addresses) != all(addresses):
            raise ValueError("either every address is tls:// or none")
        if not self.tls and (self.ca_file or self.cert_file or self.key_file):
            raise ValueError("certificates are for addresses with tls://")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("a certificate needs its key")
        return self

    @property
    def tls(self) -> bool:
        return self.url.startswith("tls://")

    def password(self) -> SecretStr | None:
        """The NATS password, or `None` for a server without users."""
        return SecretStr(self.password_file.read_text().strip()) if self.password_file else None


class FairnessSettings(BaseSettings):
    """How a process shares itself out among those who ask it; with the prefix `BUS_` too."""

    model_config = SettingsConfigDict(env_prefix="BUS_", env_ignore_empty=True, frozen=True)

    tenant_share: float = Field(default=0.75, gt=0, le=1)
    """Part of the slots of each request that one tenant may hold while another one asks too; alone it may have all."""
    tenant_weights: dict[str, Annotated[float, Field(gt=0)]] = {}
    """Turns of a tenant among those that wait, as JSON such as `{"acme": 3}`; a tenant that is not named has one."""
    key_rate: float = Field(default=200.0, ge=0)
    """Requests a second of one external system's key to one process; 0 for no limit. The owner of a local stack has
    none."""
    key_burst: int = Field(default=400, ge=1)
    """Requests of such a key at once. Over them it is refused with `too_many_requests`, and far over them not answered."""


class TelemetrySettings(BaseSettings):
    """The standard variables of OpenTelemetry that are looked at here; its SDK and its exporter read the others."""

    model_config = SettingsConfigDict(env_prefix="OTEL_", env_ignore_empty=True, frozen=True, populate_by_name=True)

    exporter_otlp_endpoint: str | None = None
    """Address of a collector that takes OTLP by HTTP, such as `http://collector:4318`; without it no span leaves a process."""
    exporter_otlp_traces_endpoint: str | None = None
    """The same for spans alone, with its path."""
    capture_message_content: bool = Field(default=False, validation_alias="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
    """Whether exported spans hold what people and models said, each text cut at 8,192 characters."""

    @property
    def exports(self) -> bool:
        return bool(self.exporter_otlp_endpoint or self.exporter_otlp_traces_endpoint)
