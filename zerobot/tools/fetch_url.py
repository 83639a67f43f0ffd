"""The tool `fetch_url`: reads a page of the public Web."""

from urllib.parse import unquote

from pydantic import Field

from zerobot.core.tools import (
    Access,
    Accesses,
    BlockedByToolError,
    Effect,
    Execution,
    Mode,
    Risk,
    Tool,
    ToolContext,
    ToolOutput,
)
from zerobot.security.addresses import MAX_URL, AddressRefusedError, WebAddress
from zerobot.security.own_secrets import OwnSecrets
from zerobot.security.visible import one_line
from zerobot.security.web import WebAnswer, WebError, WebReader
from zerobot.tools.base import Arguments, ModelTool
from zerobot.tools.fence import Fence
from zerobot.tools.page import CONVERSION_SECONDS, MAX_CHARACTERS, UnreadableError, page_text

NAME = "fetch_url"
FENCE = Fence("web_page", "Somebody else wrote this.")


class FetchArguments(Arguments):
    """Arguments of `fetch_url`."""

    url: str = Field(
        min_length=1, max_length=MAX_URL, description="Whole URL on the public Web, beginning with https:// or http://."
    )


def fetch_tool(web: WebReader, secrets: OwnSecrets) -> Tool:
    """The tool.

    Args:
        web: Fetches, within bounds.
        secrets: The daemon's own; a URL with one of them is not fetched.
    """

    def resolve(arguments: FetchArguments) -> Execution:
        url = arguments.url
        if secrets.named_in([url, unquote(url)]):
            raise BlockedByToolError("The URL holds one of the bot's own secrets; it is not sent to anybody.")
        try:
            address = web.address(url)
        except AddressRefusedError as error:
            raise BlockedByToolError(f"{one_line(url)[:300]}: {error}.") from error

        async def run(_context: ToolContext) -> ToolOutput:
            return await _fetch(web, address)

        return Execution(
            run=run,
            description=f"Fetch {address}",
            effects=frozenset({Effect.READ, Effect.NETWORK}),
            risk=Risk.MEDIUM,
            site=address.site,
            destination=url,
            accesses=Accesses((Access("network", Mode.READ),)),
            # The fetch and the conversion of a page are ended by their own limits first, which say more.
            timeout=web.seconds + CONVERSION_SECONDS + 10.0,
        )

    return ModelTool(
        NAME,
        "Fetch a page or a text file from the public Web (GET). Pages come as Markdown. Private and local addresses "
        "cannot be reached.",
        FetchArguments,
        resolve,
    )


async def _fetch(web: WebReader, address: WebAddress) -> ToolOutput:
    try:
        answer = await web.get(address)
    except WebError as error:
        return ToolOutput(text=_quiet(str(error)), ok=False, outside_content=error.quotes)
    try:
        text = await page_text(answer.data, answer.content_type, str(answer.address))
    except UnreadableError as error:
        return ToolOutput(
            text=f"{_about(answer, address)}\nNothing of it is shown: {error}.", ok=False, outside_content=True
        )
    note = "" if answer.complete and len(text) < MAX_CHARACTERS else "[the rest is left out: it is too long]"
    return ToolOutput(
        text=f"{_about(answer, address)}\n{FENCE.around(text, note)}",
        ok=answer.status < 400,
        outside_content=True,
    )


def _about(answer: WebAnswer, asked: WebAddress) -> str:
    """Where it came from and what it is, in the daemon's words."""
    redirected = "" if answer.address == asked else f" (redirected from {asked})"
    kind = _quiet(answer.content_type.partition(";")[0].strip()[:80]) or "no type given"
    size = f"{len(answer.data)} bytes" if answer.complete else f"more than {len(answer.data)} bytes"
    return f"{answer.address}{redirected}\nstatus {answer.status}, {kind}, {size}"


def _quiet(text: str) -> str:
    """Words of a server's own on one line, without what could pass for a tag."""
    return one_line(text).replace("<", "&lt;")
