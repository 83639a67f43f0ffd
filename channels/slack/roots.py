"""What a thread is about: its first message, for who is called into the thread of others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from channels.slack.content import Me, Payload, attachments, labels, said
from channels.slack.web import LinkError, Web, WebError
from zerobot.core.envelope import Quote

QUOTE_CHARACTERS = 1500
"""As much of it as goes to the model; a whole message would be up to 40,000."""
_PATIENCE = 1.0


async def root_of(web: Web, channel: str, thread: str) -> Payload:
    """Ask for the first message of a thread; empty when it cannot be had soon: then it goes without."""
    try:
        async with asyncio.timeout(_PATIENCE):
            page = await web.call("conversations.replies", channel=channel, ts=thread, limit=1)
    except (WebError, LinkError, TimeoutError):
        return {}
    found: Payload = next(iter(page.get("messages", ())), {})
    return found


def quote_of(root: Payload, me: Me, names: Mapping[str, str]) -> Quote | None:
    """A thread's first message as what is answered in it; pure."""
    files = [f"[{file.kind}: {file.name}]" for file in attachments(root)]
    text = "\n".join([*labels(root), said(str(root.get("text") or ""), me, names).text, *files]).strip()
    if len(text) > QUOTE_CHARACTERS:
        text = text[:QUOTE_CHARACTERS].rstrip() + " …"
    user = str(root.get("user") or "")
    return Quote(author=names.get(user) or user or "somebody", text=text) if text else None
