"""The Responses API: OpenAI and the servers that speak its newer protocol."""

from zerobot.providers.address import key_headers
from zerobot.providers.http_model import WireProtocol, kind_of
from zerobot.providers.responses_decode import ResponsesDecoder
from zerobot.providers.responses_encode import encode

KIND = kind_of(
    WireProtocol(
        name="openai_responses",
        base_url="https://api.openai.com/v1",
        ask_path="responses",
        list_path="models",
        headers=key_headers,
        encode=lambda request, provider, _base_url: encode(request, provider),
        decoder=ResponsesDecoder,
    )
)
