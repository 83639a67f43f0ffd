"""What operators do with memory from the shell, whoever an entry belongs to. Plain JSON values in and out."""

from collections.abc import Sequence
from dataclasses import dataclass

from zerobot.core.errors import ZerobotError
from zerobot.core.memory import MemoryBackend, MemoryEntry, MemoryOwner, MemorySource, NewMemory
from zerobot.core.places import Identity
from zerobot.memory.markers import poses
from zerobot.store.audit import Audit

MAX_LISTED = 10_000


class MemoryOperationError(ZerobotError):
    """It cannot be done; `str(error)` says why, for the person who asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOperations:
    """The operations over one backend."""

    backend: MemoryBackend
    audit: Audit

    async def list(self, owner: str = "", *, superseded: bool = False) -> "Sequence[dict[str, object]]":
        """Entries, the newest first.

        Args:
            owner: As `MemoryOwner` is written; empty: of everybody.
            superseded: With their earlier versions.

        Raises:
            MemoryOperationError: That is no owner.
        """
        entries = await self.backend.list(await self._owners(owner), MAX_LISTED, superseded=superseded)
        return [as_plain(entry) for entry in entries]

    async def search(self, text: str, owner: str = "", limit: int = 50) -> "Sequence[dict[str, object]]":
        """Entries that fit a text, the most relevant first, each with its `relevance`.

        Raises:
            MemoryOperationError: That is no owner.
        """
        found = await self.backend.recall(await self._owners(owner), text, limit)
        return [as_plain(each.entry) | {"relevance": round(each.relevance, 2)} for each in found]

    async def forget(self, entry: int, by: Identity) -> dict[str, object]:
        """Delete an entry for good, with its earlier versions; on record without what it said.

        Raises:
            MemoryOperationError: There is no such entry.
        """
        gone = await self.backend.forget(await self._owners(""), entry)
        if gone is None:
            raise MemoryOperationError(f"there is no memory {entry}; see: zerobot memory list")
        await self.audit.note(str(by), "memory.forget", f"{entry} of {gone.owner}")
        return as_plain(gone)

    async def restore(self, entry: int, by: Identity) -> dict[str, object]:
        """Let an earlier version be the current one again.

        Raises:
            MemoryOperationError: There is no such earlier version.
        """
        stored = await self.backend.restore(await self._owners(""), entry)
        if stored is None:
            raise MemoryOperationError(f"{entry} is no earlier version of a memory; see: zerobot memory list --all")
        await self.audit.note(str(by), "memory.restore", f"{entry} of {stored.entry.owner}")
        return as_plain(stored.entry)

    async def add(self, owner: str, key: str, text: str, by: Identity) -> dict[str, object]:
        """Store an entry for any owner: the only way to one that all who talk to an agent may read.

        Raises:
            MemoryOperationError: That is no owner, the key or the text is empty or too long, or they pose as protocol.
            MemoryFullError: There is no room for it.
        """
        if poses(key) or poses(text):
            raise MemoryOperationError(
                "the text has a marker of the model's protocol in it, so it would never be shown"
            )
        try:
            stored = await self.backend.remember(
                NewMemory(
                    owner=MemoryOwner.parse(owner), key=key, text=text, source=MemorySource.OPERATOR, written_by=by
                )
            )
        except ValueError as error:
            raise MemoryOperationError(str(error)) from error
        await self.audit.note(str(by), "memory.add", f"{stored.entry.id} of {stored.entry.owner}")
        return as_plain(stored.entry)

    async def _owners(self, owner: str) -> Sequence[MemoryOwner]:
        if not owner:
            return await self.backend.owners()
        try:
            return [MemoryOwner.parse(owner)]
        except ValueError as error:
            raise MemoryOperationError(str(error)) from error


def as_plain(entry: MemoryEntry) -> dict[str, object]:
    """An entry as plain JSON values."""
    return {
        "id": entry.id,
        "owner": str(entry.owner),
        "key": entry.key,
        "text": entry.text,
        "kind": entry.kind.value,
        "source": entry.source.value,
        "by": str(entry.written_by),
        "at": entry.created_at.isoformat(timespec="seconds"),
        "superseded_at": entry.superseded_at.isoformat(timespec="seconds") if entry.superseded_at else "",
    }
