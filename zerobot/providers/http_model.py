"""The one provider for every model API over HTTP; what differs between them is a `WireProtocol`."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from zerobot.core.model import ModelEvent, ModelProvider, ModelRequest
from zerobot.core.provider_kind import ProviderKind, ProviderServices, ProviderSettings
from zerobot.providers.address import below
from zerobot.providers.probe import probe
from zerobot.providers.text_tools import with_text_tools

if TYPE_CHECKING:
    from zerobot.providers.transport import Decoder, Exchange


class MakeDecoder(Protocol):
    """Makes the decoder of one stream, for the provider of a name."""

    def __call__(self, provider: str, /, *, secret: str) -> "Decoder":
        """Return a new one; `secret` is the key, which stays out of its errors."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WireProtocol:
    """A model API: where its questions go, how they are written, and how its answers are read."""

    name: str
    """The `kind` of its providers in the configuration."""
    base_url: str
    """The vendor's own server."""
    ask_path: str
    """Below the base address: where questions are posted."""
    list_path: str
    """Below the base address: where the models are listed."""
    headers: Callable[[str, str], Mapping[str, str]]
    """The headers with the key, by base address and key."""
    encode: Callable[[ModelRequest, str, str], Mapping[str, object]]
    """The body of a streaming question, by request, name of the provider and base address."""
    decoder: MakeDecoder


class HttpModel:
    """A server that speaks a protocol."""

    def __init__(self, name: str, settings: ProviderSettings, exchange: "Exchange", protocol: WireProtocol) -> None:
        self.name = name
        self._key = settings.key
        self._base_url = settings.base_url or protocol.base_url
        self._exchange = exchange
        self._protocol = protocol

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask once; see `ModelProvider`."""
        protocol = self._protocol
        body = protocol.encode(request, self.name, self._base_url)
        decoder = protocol.decoder(self.name, secret=self._key)
        return self._exchange.stream(below(self._base_url, protocol.ask_path), self._headers(), body, decoder)

    async def check(self, model: str) -> str:
        """Look the model up in the server's list, or ask it for a word if it is not listed; see `ModelProvider`."""
        url = below(self._base_url, self._protocol.list_path)
        return await probe(self, self._exchange, url, self._headers(), model)

    def _headers(self) -> Mapping[str, str]:
        return self._protocol.headers(self._base_url, self._key)


def kind_of(protocol: WireProtocol) -> ProviderKind:
    """Return the kind of the providers that speak a protocol."""

    def opened(name: str, settings: ProviderSettings, services: ProviderServices) -> ModelProvider:
        # Here, so that who only reads kinds does not load the HTTP client.
        from zerobot.providers.transport import Exchange  # noqa: PLC0415

        model = HttpModel(name, settings, Exchange(name, settings, services), protocol)
        return with_text_tools(model, settings)

    return ProviderKind(name=protocol.name, default_base_url=protocol.base_url, needs_key=True, open=opened)
