"""How many pictures the model APIs take in a request, how large, and of which types.

An API measures a picture in its base64 form, which is a third longer than the file; the numbers here are of files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zerobot.core.messages import StoredFile
from zerobot.providers.address import host_of

_MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureLimits:
    """What a request may have; all that is below is taken."""

    count: int = 8
    """Pictures."""
    each: int = 3_900_000
    """Bytes of one."""
    total: int = 18 * _MB
    """Bytes of all; more would also take long to send, with every step."""
    types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

    def takes(self, picture: StoredFile) -> bool:
        """Whether a request may have it at all."""
        return picture.size <= self.each and picture.mime in self.types

    def hold(self, pictures: Sequence[StoredFile], share: float = 1.0) -> bool:
        """Whether these fit into a request, or into a share of one."""
        size = sum(picture.size for picture in pictures)
        return len(pictures) <= self.count * share and size <= self.total * share


UNKNOWN = PictureLimits()
"""For servers that say nothing: what nearly all of the others take, in size as in number."""

_LIMITS: Mapping[str, PictureLimits] = {
    # docs.claude.com/en/docs/build-with-claude/vision: 5 MiB in base64, 32 MB a request, and from the 21st picture on
    # all of them may only have 2000 pixels a side instead of 8000.
    "api.anthropic.com": PictureLimits(count=20),
    # platform.openai.com/docs/guides/images-vision: 20 MB each, 50 MB and 500 pictures a request.
    "api.openai.com": PictureLimits(count=20, each=15 * _MB),
    # ai.google.dev/gemini-api/docs/image-understanding: 20 MB a request, text included; no GIF.
    "generativelanguage.googleapis.com": PictureLimits(
        count=20, each=7 * _MB, total=12 * _MB, types=frozenset({"image/png", "image/jpeg", "image/webp"})
    ),
    # docs.mistral.ai/capabilities/vision: 10 MB each, 8 pictures.
    "api.mistral.ai": PictureLimits(count=8, each=7 * _MB),
    # console.groq.com/docs/vision: 5 pictures; a request with pictures in base64 has at most 4 MB.
    "api.groq.com": PictureLimits(count=5, each=2_800_000, total=2_800_000),
    # docs.x.ai/docs/guides/image-understanding: 20 MiB each, JPEG and PNG.
    "api.x.ai": PictureLimits(count=20, each=15 * _MB, types=frozenset({"image/png", "image/jpeg"})),
}


def limits_at(base_url: str) -> PictureLimits:
    """Return what the server at an address takes."""
    return _LIMITS.get(host_of(base_url), UNKNOWN)
