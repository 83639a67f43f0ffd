"""The configured models: opened when one is first asked for, and kept."""

from collections.abc import Callable

from zerobot.config.loader import LoadedConfig
from zerobot.config.schema import DEMO, AgentSettings, ProviderTable
from zerobot.core.model import ModelProvider
from zerobot.core.provider_kind import ProviderServices
from zerobot.providers.catalogue import Catalogue
from zerobot.providers.picture_limits import limits_at
from zerobot.providers.pictures import ReadPicture, SeeingModel
from zerobot.turn.kit import ModelChoice, ModelRoute


class Models:
    """Opens providers.

    Args:
        config: Names the providers.
        services: What they are given.
        catalogue: Knows their windows, and which of them can see.
        read_picture: Reads what is attached; None: no model is shown anything, as for who only checks them.
    """

    def __init__(
        self,
        config: LoadedConfig,
        services: ProviderServices,
        catalogue: Callable[[], Catalogue],
        read_picture: ReadPicture | None = None,
    ) -> None:
        self._config = config
        self._services = services
        self._catalogue = catalogue
        self._read_picture = read_picture
        self._open: dict[str, ModelProvider] = {}

    def knows(self, reference: str) -> bool:
        """Whether `PROVIDER/MODEL` names a provider that is configured."""
        provider, slash, model = reference.partition("/")
        return bool(slash and model) and (provider in self._config.settings.providers or provider == DEMO)

    def route(self, agent: AgentSettings, chosen: str) -> ModelRoute:
        """The models of an agent in the order in which they are tried; `chosen` (by /model) comes first, alone."""
        first = chosen if self.knows(chosen) else agent.model
        references = [first, *(each for each in agent.fallback_models if each != first)]
        return ModelRoute(choices=[self.choice(reference) for reference in references])

    def choice(self, reference: str) -> ModelChoice:
        """A model by `PROVIDER/MODEL`, the provider being configured."""
        name, _, model = reference.partition("/")
        table = self._table(name)
        if name not in self._open:
            kind = self._config.kinds.providers[table.kind or name]()
            self._open[name] = kind.open(name, table, self._services)
        catalogue = self._catalogue()
        facts, provider = catalogue.facts(reference), self._open[name]
        read = self._read_picture if facts.vision else None
        if read is not None:
            provider = SeeingModel(provider, limits_at(catalogue.addresses.get(name, "")), read)
        return ModelChoice(
            provider,
            model,
            max_output=facts.max_output,
            sees=read is not None,
            max_retries=table.max_retries,
            retry_cap=table.retry_cap,
        )

    def window(self, route: ModelRoute) -> int | None:
        """Tokens that the first model of a route reads and writes together; None: not known."""
        return self._catalogue().window_of(str(route.choices[0]))

    def _table(self, name: str) -> ProviderTable:
        return self._config.settings.providers.get(name) or ProviderTable(kind=DEMO)
