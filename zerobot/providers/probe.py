"""The small real call behind `zerobot doctor`: does the key work, and is the model there."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from zerobot.core.errors import ProviderError
from zerobot.core.ids import TurnId
from zerobot.core.messages import UserMessage
from zerobot.core.model import ModelProvider, ModelRequest
from zerobot.providers.json_values import list_of, mapping_of, text_of

if TYPE_CHECKING:
    from zerobot.providers.transport import Exchange

_NO_SUCH_PAGE = frozenset({404, 405, 501})
_FEW_TOKENS = 16


async def probe(provider: ModelProvider, exchange: "Exchange", url: str, headers: Mapping[str, str], model: str) -> str:
    """Return a line about the model; lists cost nothing, so a question is only asked where a list does not settle it.

    Args:
        provider: What would answer.
        exchange: Its way to the server.
        url: Where the server lists its models.
        headers: With the key.
        model: The model that should be there.

    Raises:
        ProviderError: The server is not reached, refuses the key, or does not know the model.
    """
    try:
        listed = _ids(await exchange.get_json(url, headers))
    except ProviderError as error:
        if error.status not in _NO_SUCH_PAGE:
            raise
        listed = frozenset()
    if model in listed:
        return f"the key works and {model} is available ({len(listed)} models)"
    # Names of deployments, aliases and open servers are often in no list.
    question = UserMessage(seq=0, turn=TurnId("check"), text="Say OK.")
    request = ModelRequest(model=model, system="", messages=[question], max_output_tokens=_FEW_TOKENS)
    async for _ in provider.stream(request):
        # To the end: only a whole answer proves anything.
        pass
    return f"the key works and {model} answers"


def _ids(body: bytes) -> frozenset[str]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(text_of(mapping_of(entry).get("id")) for entry in list_of(mapping_of(document).get("data")))
