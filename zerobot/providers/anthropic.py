"""The provider for the Messages API: Anthropic and servers that speak its protocol."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from zerobot.core.model import ModelEvent, ModelProvider, ModelRequest
from zerobot.core.provider_kind import ProviderKind, ProviderServices, ProviderSettings
from zerobot.providers.anthropic_decode import MessagesDecoder
from zerobot.providers.anthropic_encode import encode
from zerobot.providers.probe import probe
from zerobot.providers.text_tools import with_text_tools

if TYPE_CHECKING:
    from zerobot.providers.transport import Exchange

BASE_URL = "https://api.anthropic.com"
API_VERSION = "2023-06-01"
"""The version of the protocol, which every request must name (docs.claude.com/en/api/versioning)."""


class AnthropicModel:
    """A server that answers `POST /v1/messages`."""

    def __init__(self, name: str, settings: ProviderSettings, exchange: "Exchange") -> None:
        self.name = name
        self._key = settings.key
        self._base_url = (settings.base_url or BASE_URL).rstrip("/")
        self._exchange = exchange

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask once; see `ModelProvider`."""
        decoder = MessagesDecoder(self.name, secret=self._key)
        body = encode(request, self.name)
        return self._exchange.stream(f"{self._base_url}/v1/messages", self._headers(), body, decoder)

    async def check(self, model: str) -> str:
        """Look the model up in the server's list, or ask it for a word if it is not listed; see `ModelProvider`."""
        return await probe(self, self._exchange, f"{self._base_url}/v1/models?limit=1000", self._headers(), model)

    def _headers(self) -> dict[str, str]:
        return {"x-api-key": self._key, "anthropic-version": API_VERSION}


def _open(name: str, settings: ProviderSettings, services: ProviderServices) -> ModelProvider:
    # Here, so that who only reads kinds does not load the HTTP client.
    from zerobot.providers.transport import Exchange  # noqa: PLC0415

    return with_text_tools(AnthropicModel(name, settings, Exchange(name, settings, services)), settings)


KIND = ProviderKind(name="anthropic", default_base_url=BASE_URL, needs_key=True, open=_open)
