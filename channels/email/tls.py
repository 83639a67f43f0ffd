"""How the servers of a mailbox are known: the usual certificate authorities, a private one beside them, TLS 1.2 up."""

from __future__ import annotations

import ssl

import certifi

from zerobot.core.errors import ChannelFaultError


def make_context(ca_file: str) -> ssl.SSLContext:
    """Make the context of all TLS connections of a mailbox. Host names are checked (RFC 6125).

    The system's authorities count; where the system has none (Python's own build for macOS, a bare image), Mozilla's.

    Args:
        ca_file: A file of certificates (PEM) that are trusted beside those; empty: there is none.

    Raises:
        ChannelFaultError: The file cannot be read, or has no certificate in it.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    paths = ssl.get_default_verify_paths()
    if paths.cafile is None and paths.capath is None:
        context.load_verify_locations(certifi.where())
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except ssl.SSLError as error:
            raise _bad_file("has no certificate in it that can be read") from error
        except OSError as error:
            raise _bad_file(f"cannot be read: {error.strerror}") from error
    return context


def _bad_file(why: str) -> ChannelFaultError:
    return ChannelFaultError(
        f"the file that tls_ca_file names {why}",
        advice="let tls_ca_file name a file with your mail server's CA certificate, in PEM form",
    )
