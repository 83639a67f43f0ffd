"""A certificate authority of a test: openssl makes its certificates, nobody else trusts them."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority in a folder."""

    folder: Path

    @property
    def ca_file(self) -> Path:
        """Its own certificate, for who shall trust it."""
        return self.folder / "ca.pem"

    def server_context(self, *names: str) -> ssl.SSLContext:
        """A server's context with a certificate for some names, as `DNS:localhost` or `IP:127.0.0.1`."""
        stem = self.folder / "-".join(names).replace(":", "_")
        key, request, certificate, extensions = (
            stem.with_name(stem.name + end) for end in (".key", ".csr", ".pem", ".x")
        )
        extensions.write_text(f"subjectAltName={','.join(names)}\n")
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-subj", "/CN=a server of a test", "-keyout", key, "-out", request)  # fmt: skip
        _openssl("x509", "-req", "-in", request, "-CA", self.ca_file, "-CAkey", self.folder / "ca.key", "-days", "2",
                 "-CAcreateserial", "-extfile", extensions, "-out", certificate)  # fmt: skip
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        return context

    def client_context(self) -> ssl.SSLContext:
        """A client's context that trusts this authority and no other."""
        return ssl.create_default_context(cafile=str(self.ca_file))


def make_authority(folder: Path) -> Authority:
    """Make one whose certificates hold for two days."""
    _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=the authority of a test", "-addext", "keyUsage=critical,keyCertSign",
             "-keyout", folder / "ca.key", "-out", folder / "ca.pem")  # fmt: skip
    return Authority(folder)


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
