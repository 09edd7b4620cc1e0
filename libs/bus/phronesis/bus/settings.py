"""Where the broker is, who this process is to it, and whom it trusts."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class BusSettings(BaseSettings):
    """Settings with the prefix `BUS_`. Files, not variables, hold what is secret."""

    model_config = SettingsConfigDict(env_prefix="BUS_", frozen=True)

    url: str = "nats://127.0.0.1:4222"
    """Address of the NATS server, or several with commas."""
    password_file: Path | None = None
    """File with this service's NATS password; the NATS user has the service's name."""
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

    def password(self) -> SecretStr | None:
        """The NATS password, or `None` for a server without users."""
        return SecretStr(self.password_file.read_text().strip()) if self.password_file else None
