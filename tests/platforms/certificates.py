"""A certificate authority for tests: openssl makes its certificates, nobody else trusts them."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

_NEW = ("req", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
_DAYS = "3650"  # A developer may keep servers that have such certificates running for long.
# Python refuses chains without these from 3.13 on (RFC 5280).
_SERVER = """
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
_AUTHORITY = """
[req]
distinguished_name = name
prompt = no
x509_extensions = authority
[name]
CN = the authority of a test
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
"""


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority in a folder."""

    folder: Path

    @property
    def ca_file(self) -> Path:
        """Its own certificate, for who shall trust it."""
        return self.folder / "ca.pem"

    def certificate(self, name: str) -> Path:
        """A server's certificate and its key, in one file.

        Args:
            name: Whom it is for, as `DNS:localhost` or `IP:127.0.0.1`.
        """
        stem = self.folder / name.replace(":", "_")
        key, request, signed, whole = (stem.with_name(stem.name + end) for end in (".key", ".csr", ".crt", ".pem"))
        extensions = stem.with_name(stem.name + ".cnf")
        extensions.write_text(f"{_SERVER}subjectAltName = {name}\n")
        _openssl(*_NEW, "-subj", "/CN=a server of a test", "-keyout", key, "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.ca_file, "-CAkey", self.folder / "ca.key",
                 "-CAcreateserial", "-days", _DAYS, "-extfile", extensions, "-out", signed)  # fmt: skip
        whole.write_text(signed.read_text() + key.read_text())
        return whole

    def server_context(self, name: str) -> ssl.SSLContext:
        """A server's context with such a certificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate(name))
        return context

    def client_context(self) -> ssl.SSLContext:
        """A client's context that trusts this authority and no other."""
        return ssl.create_default_context(cafile=str(self.ca_file))


def make_authority(folder: Path) -> Authority:
    """Make one in a folder, which is made as well."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.cnf").write_text(_AUTHORITY)
    _openssl(*_NEW, "-x509", "-config", folder / "ca.cnf", "-days", _DAYS,
             "-keyout", folder / "ca.key", "-out", folder / "ca.pem")  # fmt: skip
    return Authority(folder)


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"openssl failed: {done.stderr}")
