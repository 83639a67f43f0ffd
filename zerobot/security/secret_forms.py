r"""What secrets look like: the forms of providers' keys, key blocks, and what stands around other secrets.

The patterns are used on whole texts (`redact`) and on texts that still grow (`leaks`), so a beginning has to be told
from what is no beginning: each is made only of what `beginnings` reads, and all that repeats without end is a run of
one kind of character. `\w` is ASCII: a letter of another alphabet is no part of a key, and a key may follow it.
"""

import re
from dataclasses import dataclass

# Forms of keys that their providers document, or that are seen in the wild. Each has a beginning that ordinary text
# does not have, and a length. `(?<![\w-])` keeps `task-…` from being read as `sk-…`. Looking ahead is bounded
# everywhere, so that the time stays linear whatever the text is.
KEYS = (
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
KEY = r"(?<![\w-])(?:" + "|".join(KEYS) + ")"

# A private key block. In JSON its line ends are `\n`, so that a backslash may stand in it.
_KINDS = r"(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
BLOCK_BEGIN = "-----BEGIN " + _KINDS
BLOCK_END = "-----END " + _KINDS
BLOCK_BODY = r"[A-Za-z0-9+/=\s:,.\-]|\\[nr]"
NO_BLOCK_BODY = r"[^A-Za-z0-9+/=\s:,.\-\\]|\\(?=[^nr])"
"""What ends a block that has no end of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A secret that is known only by what stands around it."""

    head: str
    """What stands before it; of bounded length."""
    value: str
    """The secret."""
    held: str
    """The set of characters that the secret is made of."""
    tail: str = ""
    """What has to follow, or must not: it is looked at and not masked."""
    tail_begun: str = ""
    """A beginning of that after which it is still open whether it follows."""
    assigned: bool = False
    """Whether it stands after a name and `=`; then it may be code, and only a random-looking value counts."""


_OPAQUE = r"[\w.+/=~-]"
_ASSIGNED = r"[A-Za-z0-9_\-./+~@%=]"
_NAMES = (
    "api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|secret"
    "|api[_-]?token|auth[_-]?token|access[_-]?token|refresh[_-]?token|token|password|passwd|passphrase"
)
CONTEXTS = (
    Context(
        head=r"://[\w.%+~-]{0,200}:",
        value=r"[\w.%+~!$&*=-]{3,}",
        held=r"[\w.%+~!$&*=-]",
        tail=r"(?=@[\w.\[-])",
        tail_begun="@",
    ),
    Context(
        head=r"(?i:\bauthorization[\"']?\s{0,40}[:=]\s{0,40}[\"']?(?:basic|bearer|token|bot)\s{1,40})",
        value=_OPAQUE + "{8,}",
        held=_OPAQUE,
    ),
    Context(head=r"(?i:\bbearer\s{1,40})", value=_OPAQUE + "{20,}", held=_OPAQUE),
    Context(head=r"https://hooks\.[\w.-]{1,80}/(?:services|workflows)/", value=r"[\w/-]{20,}", held=r"[\w/-]"),
    Context(head=r"/api/webhooks/\d{1,30}/", value=r"[\w-]{30,}", held=r"[\w-]"),
    Context(
        head=r"(?i:[?&](?:access_token|api_key|apikey|token|sig|signature|client_secret|secret|password)=)",
        value=_ASSIGNED + "{8,}",
        held=_ASSIGNED,
    ),
    Context(
        head=r"(?i:(?<![a-z0-9])(?:" + _NAMES + r")[\"']?\s{0,40}[=:]\s{0,40}[\"']?)",
        value=_ASSIGNED + "{8,}",
        held=_ASSIGNED,
        tail=r"(?![\w(\[{.…*])",
        assigned=True,
    ),
)
CONTEXT = "|".join(f"{each.head}({each.value}){each.tail}" for each in CONTEXTS)
ASSIGNED = next(number for number, each in enumerate(CONTEXTS, 1) if each.assigned)
"""The group of `CONTEXT` that holds an assigned value."""

_CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z|\.{0,2}/|https?:|\d+(?:\.\d+)*\Z", re.ASCII)


def is_secret(found: re.Match[str]) -> bool:
    """Whether a match of `CONTEXT` is a secret. An assigned value is one if it looks random and is no code."""
    if found.lastindex != ASSIGNED:
        return True
    value = found[ASSIGNED]
    looks_random = re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
    return bool(looks_random) and not _CODE.match(value) and "..." not in value
