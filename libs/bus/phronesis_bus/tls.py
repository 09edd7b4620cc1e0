"""TLS to the broker: whom a process believes, what it shows of itself, and no password before both are settled."""

from __future__ import annotations

import ssl
from typing import Any

from .client import NoTls
from .settings import BusSettings


class UntrustedBroker(Exception):
    """The broker did not prove who it is, did not believe this process's certificate, or offers no TLS where it has to."""


def options(settings: BusSettings) -> dict[str, Any]:
    """What the client is told of TLS; nothing at an address without it.

    Raises:
        UntrustedBroker: one of the files is missing, or is no certificate or key.
    """
    if not settings.tls:
        return {}
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if settings.cert_file is not None:
            context.load_cert_chain(settings.cert_file, settings.key_file)
    except OSError as error:  # the library's own errors are among them
        raise UntrustedBroker("the files of BUS_CA_FILE, BUS_CERT_FILE and BUS_KEY_FILE cannot be used") from error
    return {"tls": context}


def untrusted(error: Exception) -> UntrustedBroker | None:
    """What a failed connection means where TLS is the reason; `None` for everything that may pass by itself."""
    if isinstance(error, NoTls):
        return UntrustedBroker("the broker offers no TLS, and the address asks for it")
    if isinstance(error, ssl.SSLCertVerificationError):
        return UntrustedBroker("the broker's certificate is not believed: see BUS_CA_FILE, and the names in the certificate")
    if isinstance(error, ssl.SSLError):
        return UntrustedBroker("the broker ended the TLS handshake: it may want a certificate, see BUS_CERT_FILE")
    return None
