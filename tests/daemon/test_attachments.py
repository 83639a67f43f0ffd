"""What people attach, in the workspace and back from there."""

import base64
import hashlib
from pathlib import Path

import pytest

from tests.daemon.test_result_files import TURN
from tests.platforms.model_images import GIF, PNG
from zerobot.core.envelope import Attachment
from zerobot.core.messages import StoredFile
from zerobot.core.picture_type import picture_type
from zerobot.daemon.attachments import AttachmentFetcher, PictureReader
from zerobot.security.bounds import Bounds
from zerobot.security.paths import GuardedFiles
from zerobot.testing.channel import PlainChannel
from zerobot.testing.clock import ManualClock

JPEG = b"\xff\xd8\xff\xe0 and so on"
WEBP = b"RIFF\x10\x00\x00\x00WEBPVP8 and so on"
PICTURE = Attachment(kind="image", name="a.png", mime="image/png", ref="r1")


class Desk:
    """Fetches into a workspace and reads back from it."""

    def __init__(self, workspace: Path) -> None:
        self.lines: list[str] = []
        self.files = GuardedFiles(Bounds(workspace=workspace))
        self.channel = PlainChannel(ManualClock())
        self._fetch = AttachmentFetcher({"test": self.channel}, self.files, {"test": 1_000_000}, self._log)
        self.read = PictureReader(self.files, self._log)

    async def fetch(self, attachment: Attachment, data: bytes) -> StoredFile:
        """Fetch a file of these bytes."""
        self.channel.files[attachment.ref] = data
        stored = await self._fetch(TURN, attachment)
        assert isinstance(stored, StoredFile)
        return stored

    def _log(self, event: str, /, *, level: str = "info", error: object = None, **fields: object) -> None:
        assert level
        assert error or fields
        self.lines.append(event)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """With a workspace of its own, which others can write into."""
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (WEBP, "image/webp"),
        (b"RIFF\x10\x00\x00\x00WAVE", ""),
        (b"<svg/>", ""),
        (b"BM bitmap", ""),
        (PNG[:5], ""),
        (b"", ""),
    ],
)
def test_a_picture_is_known_by_its_first_bytes(data: bytes, mime: str) -> None:
    """Only the four types that all model APIs name."""
    assert picture_type(data) == mime


async def test_a_picture_is_stored_with_its_true_type_and_digest(desk: Desk, tmp_path: Path) -> None:
    """What the platform says of the type is not believed; an API refuses a type that is not the bytes'."""
    stored = await desk.fetch(PICTURE, JPEG)
    assert (stored.mime, stored.digest) == ("image/jpeg", hashlib.sha256(JPEG).hexdigest())
    assert (tmp_path / stored.path).read_bytes() == JPEG
    picture = await desk.read(stored)
    assert picture is not None
    assert (picture.mime, base64.b64decode(picture.base64)) == ("image/jpeg", JPEG)
    assert picture.base64 not in repr(picture)


async def test_what_is_no_picture_has_no_digest(desk: Desk) -> None:
    """Whatever it is called, the model reads about it."""
    stored = await desk.fetch(PICTURE, b"<svg/>")
    assert (stored.mime, stored.digest) == ("image/png", "")


@pytest.mark.parametrize("change", ["gone", "changed", "longer", "link", "outside"])
async def test_only_what_was_sent_is_shown(desk: Desk, tmp_path: Path, change: str) -> None:
    """A tool that writes over a picture cannot put another one into the person's mouth, nor a file of the daemon's."""
    stored = await desk.fetch(PICTURE, PNG)
    path = tmp_path / stored.path
    (tmp_path / "other.png").write_bytes(GIF)
    if change == "gone":
        path.unlink()
    elif change == "changed":
        path.write_bytes(PNG[:-1] + b"x")
    elif change == "longer":
        path.write_bytes(PNG + b"x")
    else:
        path.unlink()
        path.symlink_to(tmp_path / "other.png" if change == "link" else "/etc/hostname")
    assert await desk.read(stored) is None
    assert desk.lines == ["attachment.not_shown"]
