"""URLs with known right answers, through the tool, the policy and an Internet of paper."""

import base64
import ssl
from typing import Any

import pytest

from tests.security.cases import Case, ident, load
from tests.security.worlds import context
from tests.tools.internet import Internet, Reply, counted
from zerobot.core.tools import BadArgumentsError, BlockedByToolError
from zerobot.security.own_secrets import OwnSecrets
from zerobot.security.web import WebLimits, WebReader
from zerobot.tools.fetch_url import fetch_tool

SECRET = "c0nfigured-s3cret-of-the-owner"
LIMIT = 1_000_000
CASES = [*load("urls"), *load("more_urls")]


def _url(case: Case) -> str:
    text: str = case["url"] + "p" * case.get("url_pad", 0)
    forms = {"token": SECRET, "secret": SECRET, "secret_b64": base64.b64encode(SECRET.encode()).decode()}
    for name, value in forms.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _internet(case: Case) -> Internet:
    internet = Internet(case["dns"])
    said: dict[str, Any] = case.get("response", {})
    size = said.get("body_bytes")
    headers = {"content-type": "text/plain", **said.get("headers", {})}
    usual = Reply(headers=headers, body=counted(size)() if size else (b"a page",))
    internet.replies[_url(case).partition("#")[0]] = usual
    for hop in case.get("redirects", []):
        internet.replies[hop["from"]] = Reply(hop["status"], {"location": hop["location"]}, ())
    return internet


@pytest.mark.parametrize("case", CASES, ids=ident)
async def test_a_fetch_goes_only_where_it_may(case: Case) -> None:
    """Whatever the verdict, nothing but the case's own places is connected to; the verdict is one that it accepts."""
    internet = _internet(case)
    web = WebReader(WebLimits(bytes=LIMIT), internet.guard, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    tool = fetch_tool(web, OwnSecrets([("channels.x.token", SECRET)]))
    text, verdict = "", "block"
    try:
        output = await tool.resolve({"url": _url(case)}).run(context())
        text, verdict = output.text, "allow" if output.ok else "block"
    except (BadArgumentsError, BlockedByToolError):
        pass
    allowed = {(address, port) for address, port in case["connects"]}
    assert set(internet.connected) <= allowed
    assert verdict in case["accept"]
    if case["accept"] == ["allow"]:
        assert internet.connected
    assert not any(SECRET in request for request in internet.requests)
    assert len(text) <= LIMIT
