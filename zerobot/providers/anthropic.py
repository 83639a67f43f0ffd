"""The Messages API: Anthropic and servers that speak its protocol."""

from zerobot.providers.anthropic_decode import MessagesDecoder
from zerobot.providers.anthropic_encode import encode
from zerobot.providers.http_model import WireProtocol, kind_of

API_VERSION = "2023-06-01"
"""The version of the protocol, which every request must name (docs.claude.com/en/api/versioning)."""

KIND = kind_of(
    WireProtocol(
        name="anthropic",
        base_url="https://api.anthropic.com",
        ask_path="v1/messages",
        list_path="v1/models?limit=1000",
        headers=lambda _base_url, key: {"x-api-key": key, "anthropic-version": API_VERSION},
        encode=lambda request, provider, _base_url: encode(request, provider),
        decoder=MessagesDecoder,
    )
)
