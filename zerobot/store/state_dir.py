"""The state directory: private, and held by one process at a time."""

import fcntl
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from zerobot.core.errors import StateLockedError, StorageError
from zerobot.store.columns import stamp

SECRET_BYTES = 32
_SECRET_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class StateDir:
    """The directory in which everything lies that must survive."""

    path: Path

    @property
    def database_path(self) -> Path:
        """The database's file."""
        return self.path / "zerobot.db"

    @property
    def socket_path(self) -> Path:
        """The control socket; only there while a daemon runs."""
        return self.path / "control.sock"

    @property
    def lock_path(self) -> Path:
        """The file whose lock says that a process holds this directory."""
        return self.path / "daemon.lock"

    @property
    def workspace(self) -> Path:
        """Where tools work unless the settings name another place; the only part of this directory in their reach."""
        return self.path / "workspace"

    def prepare(self) -> tuple[str, ...]:
        """Create the directory (0700) if there is none.

        Returns:
            Warnings, each with the command that mends it: others may read here.

        Raises:
            StorageError: Others may write here, it is somebody else's, or it can't be created. Nothing in such a
                directory can be trusted (the rule of OpenSSH's StrictModes).
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.path.stat()
        except OSError as error:
            raise StorageError(f"cannot use the state directory {self.path}: {error.strerror}") from error
        if found.st_uid != os.geteuid():
            raise StorageError(f"the state directory {self.path} belongs to another user (id {found.st_uid})")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise StorageError(f"other users may write to the state directory: run `chmod go-rwx {self.path}`")
        if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return (f"other users may read the state directory: run `chmod go-rwx {self.path}`",)
        return ()

    @contextmanager
    def lock(self, *, now: datetime, command: str) -> Iterator[None]:
        """Hold the directory. The lock is the kernel's: it ends with the process, however that ends.

        Args:
            now: UTC; written into the lock's file for who comes second.
            command: What holds it, for people: `zerobot run`. No arguments that may be private.

        Raises:
            StateLockedError: Another process holds it; the error says which, and since when.
            StorageError: As for `prepare`.
        """
        self.prepare()
        try:
            handle = os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StorageError(f"cannot open {self.lock_path}: {error.strerror}") from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StateLockedError(f"{self.path} is in use by {_holder(handle)}") from None
            _write_holder(handle, {"pid": os.getpid(), "since": stamp(now), "command": command})
            try:
                yield
            finally:
                # The file stays: removing it would let a third process lock another file of the same name.
                os.ftruncate(handle, 0)
        finally:
            os.close(handle)

    def receipt_key(self) -> bytes:
        """The key that receipts of tool results are made with.

        Raises:
            StorageError: see `secret`.
        """
        return self.secret("receipts")

    def secret(self, name: str) -> bytes:
        """A key of 32 random bytes that is made at first use and stays the same; who asks holds the lock.

        Args:
            name: `receipts`, say: a small word, not from outside.

        Raises:
            StorageError: Its file is damaged, or others can read it.
        """
        assert _SECRET_NAME.fullmatch(name), f"{name!r} names no secret"
        path = self.path / f"{name}.key"
        try:
            if not path.exists():
                _create_whole(path, secrets.token_bytes(SECRET_BYTES))
            with path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                value = file.read(SECRET_BYTES + 1)
        except OSError as error:
            raise StorageError(f"cannot use the key {path}: {error.strerror}") from error
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise StorageError(f"other users may use the key {path}: run `chmod 600 {path}`, or remove it")
        if len(value) != SECRET_BYTES:
            raise StorageError(f"the key {path} is damaged: restore it from a backup, or remove it")
        return value


def _holder(handle: int) -> str:
    """Who holds the lock, in words."""
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
        return f"process {holder['pid']} (`{holder['command']}`) since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        # Locked a moment ago, nothing written yet.
        return "another process, which has only just started or is about to end"


def _write_holder(handle: int, holder: dict[str, object]) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(holder).encode(), 0)


def _create_whole(path: Path, content: bytes) -> None:
    """Create a file (0600) with all of its content or not at all, also when the power goes."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
