"""Chat Completions: OpenAI and the many servers that speak its protocol."""

from zerobot.providers.address import key_headers
from zerobot.providers.http_model import WireProtocol, kind_of
from zerobot.providers.openai_decode import ChatDecoder
from zerobot.providers.openai_dialects import dialect_of
from zerobot.providers.openai_encode import encode

KIND = kind_of(
    WireProtocol(
        name="openai",
        base_url="https://api.openai.com/v1",
        ask_path="chat/completions",
        list_path="models",
        headers=key_headers,
        encode=lambda request, provider, base_url: encode(request, provider, dialect_of(base_url)),
        decoder=ChatDecoder,
    )
)
