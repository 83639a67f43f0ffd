"""The daemon's own secrets in a call: found in every usual form, told by their names, shown nowhere."""

import base64
import json
from dataclasses import replace
from urllib.parse import quote

import pytest

from tests.security.test_prompt import approval
from tests.security.test_prompt_cases import visible
from tests.security.worlds import NOW
from zerobot.security.own_secrets import OwnSecrets, cleaned
from zerobot.security.prompt import approval_prompt
from zerobot.security.redact import Redactor

TOKEN = "4711:winter/blue+owl&"  # not a key of any provider: only its value gives it away
NAME = "channels.second.bot_token"
OWN = OwnSecrets([(NAME, TOKEN), ("providers.main.api_key", "sk-test-0123456789abcdefghij"), ("short", "abc")], b"key")

FORMS = {
    "plain": TOKEN,
    "in a line": f"curl -H 'X-Key: {TOKEN}' https://x.test/",
    "url": quote(TOKEN, safe=""),
    "json": json.dumps({"a": TOKEN}),
    "base64": base64.b64encode(TOKEN.encode()).decode(),
    "inside base64": base64.b64encode(f"user:{TOKEN}".encode()).decode(),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_secret_is_found_in_every_usual_form(text: str) -> None:
    """Also deep inside of the arguments, and as a key of them."""
    for value in (text, {"a": [1, {"b": text}]}, {text: 1}):
        assert OWN.named_in(value) == (NAME,)
    assert TOKEN not in OWN.veil(text)


def test_what_is_none_is_not_taken_for_one() -> None:
    """Ordinary text, parts, other secrets, and what is too short to be told from a word."""
    assert OWN.named_in({"command": "abc 4711 winter blue owl", "n": [None, True, 1.5]}) == ()
    assert OWN.veil("abc 4711") == "abc 4711"
    assert OwnSecrets().named_in(TOKEN) == ()


def test_a_secret_that_is_a_number_is_found_as_one() -> None:
    """A model that writes it without quotes hides nothing by that."""
    assert OwnSecrets([("channels.email.password", "1234567890")]).named_in({"pin": 1234567890})


def test_nesting_without_end_is_no_way_around() -> None:
    """Arguments may be as deep as JSON can be written."""
    value: object = TOKEN
    for _ in range(5_000):
        value = [value]
    assert OWN.named_in(value) == (NAME,)


def test_the_digest_tells_equal_from_other_and_helps_nobody_to_guess() -> None:
    """The same secret has the same digest; under another key of the daemon it is another."""
    assert OWN.veil(TOKEN) == OWN.veil(TOKEN) != OwnSecrets([(NAME, TOKEN)], b"other").veil(TOKEN)


def test_a_prompt_tells_the_name_and_shows_no_secret_anywhere() -> None:
    """Not in the arguments, and not in the words around them that quote one."""
    asked = replace(
        approval(arguments={"command": f"echo {TOKEN}"}),
        why=f"not covered by a rule: echo {TOKEN}",
        description=f"run {TOKEN}",
        covers=f"echo {TOKEN} …",
        reason=f"no {TOKEN}",
    )
    text = visible(approval_prompt(asked, Redactor([TOKEN]), NOW, OWN))
    assert f"[secret {NAME}, {len(TOKEN)} characters, digest " in text
    assert TOKEN not in text
    long = replace(asked, arguments={"command": "x " * 5_000 + TOKEN})
    prompt = approval_prompt(long, Redactor([TOKEN]), NOW, OWN)
    assert prompt.attachment is not None
    assert TOKEN not in prompt.attachment
    assert f"[secret {NAME}" in prompt.attachment


def test_a_list_of_requests_is_cleaned_like_the_prompt() -> None:
    """Texts and keys at every depth; what is no text stays as it is."""
    value = {"a": [TOKEN, 1, None], TOKEN: {"b": True}}
    assert TOKEN not in json.dumps(cleaned(value, OWN.veil))
    assert cleaned([1, None, True, 2.5], OWN.veil) == [1, None, True, 2.5]
