"""Masks secrets in texts that leave the process: chat, logs, tool results."""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

MASK = "[redacted]"

MIN_SECRET = 8
"""Characters; a shorter configured secret would mask half of every text. The daemon warns of it at the start."""

# Forms of keys that their providers document, or that are seen in the wild. Each has a beginning that ordinary text
# does not have, and a length. `(?<![\w-])` keeps `task-…` from being read as `sk-…`. Looking ahead is bounded
# everywhere, so that the time stays linear whatever the text is.
_KEYS = (
    r"sk-(?:proj|svcacct|admin|None)-[\w-]{20,}",
    r"sk-ant-[a-z]{2,10}\d{0,3}-[\w-]{20,}",
    r"sk-or-v1-[0-9a-f]{32,}",
    r"sk-(?=[\w-]{0,200}\d)[A-Za-z0-9_]{24,}[\w-]*",
    r"GOCSPX-[\w-]{20,}",
    r"AIza[\w-]{30,}",
    r"ya29\.[\w.-]{20,}",
    r"gsk_\w{30,}",
    r"hf_(?=\w{0,200}\d|\w{0,200}[A-Z])[A-Za-z0-9]{25,}",
    r"pplx-[A-Za-z0-9]{30,}",
    r"(?:tvly|xai|nvapi|r8|co|fw|csk|jina|e2b|lin_api|secret|dapi|glc|sntrys|rnd|rpa)[-_](?=[\w-]{0,200}\d)[\w-]{28,}",
    r"r8_\w{30,}",
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{12}[A-Z0-9]{4}",
    r"gh[pousr]_[A-Za-z0-9]{30,}",
    r"github_pat_\w{30,}",
    r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[\w-]{18,}",
    r"xox[abeoprs]-(?:\d+-){1,4}[\w-]{8,}",
    r"xox[bpars]-[\w-]{24,}",
    r"xapp-\d-[\w-]{20,}",
    r"xoxe\.xox[bp]-\d-[\w-]{20,}",
    r"(?:mfa\.)?[MNO][A-Za-z\d_-]{23,27}\.[\w-]{6,7}\.[\w-]{27,}",
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"whsec_[A-Za-z0-9+/=]{24,}",
    r"SG\.[\w-]{16,}\.[\w-]{30,}",
    r"key-[0-9a-f]{32}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[\w-]{40,}",
    r"dckr_(?:pat|oat)_[\w-]{20,}",
    r"do[oprt]_v1_[0-9a-f]{40,}",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"ntn_[A-Za-z0-9]{30,}",
    r"(?:dop|hvs|hvb|vlt|ATATT|ATCTT|PMAK|NRAK|phc|phx|sbp|sqp|tfp|figd|rubygems|cio|pat)[-_.](?=[\w.=-]{0,200}\d)[\w.=-]{24,}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{50,}",
    r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}",
    r"bot\d{6,12}:[\w-]{30,}",
    r"\d{6,12}:AA[\w-]{30,}",
)
_KEY = re.compile(r"(?<![\w-])(?:" + "|".join(_KEYS) + ")")

# A whole private key, or what there is of one whose end is cut off. In JSON its line ends are `\n`.
_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[A-Za-z0-9+/=\s:,.\-]|\\n|\\r)*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\\n)?|\Z|"
    r"(?=[^A-Za-z0-9+/=\s:,.\-\\]))"
)

# Known only by what stands around them; the group is what is masked.
_CONTEXTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<=://)(?:[\w.%+~-]*):([\w.%+~!$&*=-]{3,})(?=@[\w.\[-])",
        r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token|bot)\s+([\w.+/=~-]{8,})",
        r"(?i)\bbearer\s+([\w.+/=~-]{20,})",
        r"https://hooks\.[\w.-]{1,80}/(?:services|workflows)/([\w/-]{20,})",
        r"/api/webhooks/\d+/([\w-]{30,})",
        r"(?i)otpauth://[^\s]{0,300}?[?&]secret=([A-Z2-7]{16,}=*)",
        r"(?i)[?&](?:access_token|api_key|apikey|token|sig|signature|client_secret|password)=([\w.%~+-]{8,})",
    )
)

# `NAME_API_KEY = value`: only a value with letters and digits that does not go on as code.
_ASSIGNED = re.compile(
    r"(?i)(?<![a-z0-9])(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|secret"
    r"|api[_-]?token|auth[_-]?token|access[_-]?token|refresh[_-]?token|token|password|passwd|passphrase)"
    r"[\"']?\s*[=:]\s*[\"']?([A-Za-z0-9_\-./+~@%=]{8,})(?![\w(\[{.…*])"
)
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z|\.{0,2}/|https?:|\d+(?:\.\d+)*\Z")


class Redactor:
    """Masks exact secrets in every form in which they may show, then known key forms, then what the context betrays."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = sorted({form for secret in secrets for form in forms_of(secret)}, key=len, reverse=True)
        self._exact = re.compile("|".join(map(re.escape, forms))) if forms else None

    def clean(self, text: str) -> str:
        """Return a text without secrets. A mask covers only the secret: words, quotes and shell text around it stay."""
        if self._exact is not None:
            text = self._exact.sub(MASK, text)
        if "PRIVATE KEY" in text:
            text = _PEM.sub(MASK, text)
        text = _KEY.sub(MASK, text)
        for context in _CONTEXTS:
            text = context.sub(_mask_group, text)
        return _ASSIGNED.sub(_mask_assigned, text)


def too_short(secrets: Iterable[str]) -> bool:
    """Whether a configured secret is so short that it is not searched for."""
    return any(0 < len(secret) < MIN_SECRET for secret in secrets)


def forms_of(secret: str) -> Iterator[str]:
    """The forms of a secret in a text: plain, URL, JSON, HTML, Base64 at any offset; none if it is too short."""
    if len(secret) < MIN_SECRET:
        return
    yield secret
    yield quote(secret, safe="")
    yield quote(secret)
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield html.escape(secret)
    yield from _base64_forms(secret.encode("utf-8", "surrogatepass"))


def _base64_forms(data: bytes) -> Iterator[str]:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(data).decode("ascii").rstrip("=")
        # Within a longer text the same bytes look different at each of three offsets; only whole groups are sure.
        for offset in (1, 2):
            inner = data[3 - offset :]
            sure = inner[: len(inner) // 3 * 3]
            if len(sure) >= MIN_SECRET - 2:
                yield encode(sure).decode("ascii")


def _mask_group(match: re.Match[str]) -> str:
    if MASK in match[0]:
        return match[0]
    start, end = match.start(1) - match.start(), match.end(1) - match.start()
    return match[0][:start] + MASK + match[0][end:]


def _mask_assigned(match: re.Match[str]) -> str:
    value = match[1]
    looks_random = re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
    if not looks_random or _CODE.match(value) or "..." in value:
        return match[0]
    return _mask_group(match)
