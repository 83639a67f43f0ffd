"""The provider for Chat Completions: OpenAI and the many servers that speak its protocol."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from zerobot.core.model import ModelEvent, ModelProvider, ModelRequest
from zerobot.core.provider_kind import ProviderKind, ProviderServices, ProviderSettings
from zerobot.providers.address import below, key_headers
from zerobot.providers.openai_decode import ChatDecoder
from zerobot.providers.openai_dialects import dialect_of
from zerobot.providers.openai_encode import encode
from zerobot.providers.probe import probe
from zerobot.providers.text_tools import with_text_tools

if TYPE_CHECKING:
    from zerobot.providers.transport import Exchange

BASE_URL = "https://api.openai.com/v1"


class OpenAIModel:
    """A server that answers `POST /chat/completions`."""

    def __init__(self, name: str, settings: ProviderSettings, exchange: "Exchange") -> None:
        self.name = name
        self._key = settings.key
        self._base_url = settings.base_url or BASE_URL
        self._exchange = exchange

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask once; see `ModelProvider`."""
        body = encode(request, self.name, dialect_of(self._base_url))
        decoder = ChatDecoder(self.name, secret=self._key)
        return self._exchange.stream(below(self._base_url, "chat/completions"), self._headers(), body, decoder)

    async def check(self, model: str) -> str:
        """Look the model up in the server's list, or ask it for a word if there is no list; see `ModelProvider`."""
        return await probe(self, self._exchange, below(self._base_url, "models"), self._headers(), model)

    def _headers(self) -> dict[str, str]:
        return key_headers(self._base_url, self._key)


def _open(name: str, settings: ProviderSettings, services: ProviderServices) -> ModelProvider:
    # Here, so that who only reads kinds does not load the HTTP client.
    from zerobot.providers.transport import Exchange  # noqa: PLC0415

    return with_text_tools(OpenAIModel(name, settings, Exchange(name, settings, services)), settings)


KIND = ProviderKind(name="openai", default_base_url=BASE_URL, needs_key=True, open=_open)
