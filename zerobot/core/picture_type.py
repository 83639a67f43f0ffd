"""Which files are pictures that models can be shown (pure)."""

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_RIFF, _WEBP = b"RIFF", b"WEBP"


def picture_type(data: bytes) -> str:
    """Return the media type of a picture by its first bytes; empty for anything that model APIs take no picture of.

    What a platform or a file's name says of the type does not count: a picture whose type is another one than was said
    is refused by the APIs, and with it the whole request.
    """
    if data[:4] == _RIFF and data[8:12] == _WEBP:
        return "image/webp"
    return next((mime for beginning, mime in _BEGINNINGS if data.startswith(beginning)), "")
