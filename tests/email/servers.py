"""The real mail servers, as `scripts/mail-servers` starts them: where they are, and what a test may do to them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import os
import signal
import smtplib
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MailServers:
    """Where they are and who has an account: what `scripts/mail-servers start` says."""

    host: str
    ports: Mapping[str, int]
    """`imap` (plain, and STARTTLS), `imaps`; `smtp`, `smtp_starttls`, `smtps` (with a login); `mx` (without)."""
    accounts: Mapping[str, str]
    """Addresses and passwords."""
    ca_file: str
    other_ca_file: str
    """Of an authority that has signed nothing here."""
    refusal_file: Path
    """While it is there, its line answers each recipient: `450 4.7.1 come again`."""
    homes: Path
    """Each account has a folder of its name, with a Maildir."""
    dir: Path
    dovecot_conf: str
    postfix_conf: str
    jwt_secret: str

    def deliver(self, raw: bytes, to: str, sender: str = "ann@example.test") -> None:
        """Hand a mail in from outside."""
        with smtplib.SMTP("127.0.0.1", self.ports["mx"], timeout=30) as smtp:
            smtp.sendmail(sender, [to], raw)

    def submit(self, raw: bytes, to: str, account: str) -> None:
        """Hand a mail in as an account does that has logged in."""
        with smtplib.SMTP("127.0.0.1", self.ports["smtp"], timeout=30) as smtp:
            smtp.login(account, self.accounts[account])
            smtp.sendmail(account, [to], raw)

    def mails(self, account: str, folder: str = "") -> list[Path]:
        """The files of the mails in an account's inbox, or in another folder of it."""
        home = self.homes / account.partition("@")[0] / "Maildir" / (f".{folder}" if folder else "")
        return [path for name in ("new", "cur") for path in home.glob(f"{name}/*")]

    def are_seen(self, account: str) -> list[bool]:
        """Of each mail in an account's inbox, whether it is marked as read."""
        # The flags of a Maildir's mail are letters behind a colon: https://cr.yp.to/proto/maildir.html.
        return ["S" in path.name.rpartition(":2,")[2] for path in self.mails(account)]

    async def until_mails(self, account: str, count: int) -> None:
        """Wait until so many mails are in an account's inbox."""
        async with asyncio.timeout(30):
            while len(self.mails(account)) < count:  # noqa: ASYNC110 -- nobody tells when a file appears
                await asyncio.sleep(0.05)

    def forget_numbers(self, account: str) -> None:
        """Let Dovecot number an account's inbox anew, as after the loss of its files beside the mails."""
        home = self.homes / account.partition("@")[0] / "Maildir"
        for path in home.glob("dovecot*"):
            path.unlink()

    def copies(self, account: str, message_id: str) -> int:
        """How many mails with this id are in an account's folder of sent mail."""
        field = f"Message-ID: {message_id}".encode()
        return sum(field in path.read_bytes() for path in self.mails(account, "Sent"))

    def token(self, user: str, seconds: int = 600) -> str:
        """An access token that Dovecot takes."""
        now = int(time.time())
        signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part({'sub': user, 'iat': now - 5, 'exp': now + seconds})}"
        mac = hmac.new(self.jwt_secret.encode(), signed.encode(), hashlib.sha256).digest()
        return f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"

    def dovecot(self, *command: str) -> None:
        """Start Dovecot again (no words), or `stop` it."""
        # Not by a pipe: a server that goes on holds its end open.
        nowhere = subprocess.DEVNULL
        subprocess.run(["dovecot", "-c", self.dovecot_conf, *command], check=True, stdout=nowhere, stderr=nowhere)

    @contextmanager
    def dovecot_killed(self) -> Iterator[None]:
        """Kill Dovecot with all that it has started; at the end it is back."""
        _kill(self.dir / "run/master.pid", [self.ports["imap"], self.ports["imaps"]])
        try:
            yield
        finally:
            self.dovecot()

    @contextmanager
    def postfix_killed(self) -> Iterator[None]:
        """Kill Postfix with all that it has started; at the end it is back."""
        _kill(
            self.dir / "queue/pid/master.pid", [self.ports[name] for name in ("smtp", "smtp_starttls", "smtps", "mx")]
        )
        try:
            yield
        finally:
            nowhere = subprocess.DEVNULL
            subprocess.run(["postfix", "-c", self.postfix_conf, "start"], check=True, stdout=nowhere, stderr=nowhere)

    @contextmanager
    def refusing(self, reply: str) -> Iterator[None]:
        """Postfix says this to each recipient: `450 4.7.1 come again`."""
        self.refusal_file.write_text(f"{reply}\n")
        try:
            yield
        finally:
            self.refusal_file.unlink()

    def empty(self, account: str) -> None:
        """Throw all mail of an account away, by `doveadm`; its folders stay."""
        command = ["doveadm", "-c", self.dovecot_conf, "expunge", "-u", account, "mailbox", "*", "all"]
        subprocess.run(command, check=True, capture_output=True)


def _kill(pid_file: Path, ports: Sequence[int]) -> None:
    """SIGKILL for a server and for each process that it has started; at the end nobody listens on its ports."""
    master = int(pid_file.read_text())
    # A process that it started meanwhile would live on and keep the ports.
    os.kill(master, signal.SIGSTOP)
    for pid in [*_started_by(master), master]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for port in ports:
        _until_free(port)
    # A process counts as alive until it is reaped, which may take a while where the first process of all is no init.
    pid_file.unlink()


def _until_free(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            return
        except OSError:
            continue  # somebody is about to go
        time.sleep(0.02)
    raise AssertionError(f"somebody listens on port {port} still")


def _started_by(master: int) -> Iterator[int]:
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name of the program, which may be anything, stands in parentheses.
            if int(status.read_text().rpartition(")")[2].split()[1]) == master:
                yield int(status.parent.name)


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
