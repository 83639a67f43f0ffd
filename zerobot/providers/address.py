"""Addresses under a configured `base_url`, and the key in the header that its server wants."""

from urllib.parse import urlsplit, urlunsplit

_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


def host_of(url: str) -> str:
    """Return the host of an address in lower case; empty when it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_azure(url: str) -> bool:
    """Whether an address is one of Azure's, whose servers differ from the vendor's own in details."""
    return host_of(url).endswith(_AZURE)


def below(base_url: str, path: str) -> str:
    """Return the address of a path under a base address; a query of the base stays at the end.

    Azure's older addresses carry `?api-version=...` (learn.microsoft.com/azure/ai-services/openai/reference).

    Args:
        base_url: With or without a slash at its end.
        path: Without a slash at its beginning.
    """
    try:
        scheme, place, base, query, _ = urlsplit(base_url)
    except ValueError:
        # Whoever opens it will say so, with the setting's name.
        return f"{base_url.rstrip('/')}/{path}"
    return urlunsplit((scheme, place, f"{base.rstrip('/')}/{path}", query, ""))


def key_headers(base_url: str, key: str) -> dict[str, str]:
    """Return the headers that carry the key of a server in the manner of OpenAI.

    Local servers want no key, and some refuse an empty one. Azure takes its keys as `api-key`; what comes as a bearer
    there is a token of its directory.
    """
    if not key:
        return {}
    return {"api-key": key} if is_azure(base_url) else {"authorization": f"Bearer {key}"}
