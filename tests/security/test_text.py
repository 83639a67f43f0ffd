"""Escapes, masks, names, digests and receipts."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.security.worlds import NOW
from zerobot.core.ids import CallId, ConversationId, TurnId
from zerobot.core.messages import ResultCode
from zerobot.security.digest import arguments_digest, call_digest, canonical_json
from zerobot.security.filenames import MAX_BYTES, safe_name, with_counter
from zerobot.security.receipts import ReceiptClaim, sign_receipt, verify_receipt
from zerobot.security.redact import MASK, Redactor, forms_of, too_short
from zerobot.security.visible import escape, has_hidden, lookalikes, one_line

KEY = b"k" * 32
CLAIM = ReceiptClaim(
    conversation=ConversationId(1),
    turn=TurnId("t1"),
    call=CallId("call_1"),
    tool="shell",
    arguments_digest=arguments_digest({"command": "ls"}),
    shown_text="a.txt",
    code=ResultCode.OK,
)


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_nothing_hidden_survives_the_escape(text: str) -> None:
    """Any text at all; on one line also no line end and no tab."""
    assert not has_hidden(escape(text))
    assert not set("\n\t\r") & set(one_line(text))
    assert not has_hidden(one_line(text))


@pytest.mark.parametrize("text", ["plain\n\ttext", "Grüße 日本語 русский 🧪", "مرحبا"])
def test_ordinary_text_stays(text: str) -> None:
    """Of any script, with line ends and tabs."""
    assert escape(text) == text


def test_escapes_name_the_character() -> None:
    """By its number, or by the usual short form."""
    assert escape("a\u202eb\x1b[0m\U000e0041") == "a\\u{202e}b\\u{1b}[0m\\u{e0041}"
    assert one_line("a\nb\tc\r") == "a\\nb\\tc\\r"
    assert lookalikes("／a．／") == ("／", "．")


@settings(max_examples=150, deadline=None)
@given(st.text(min_size=8, max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_a_configured_secret_never_goes_out(secret: str, before: str, after: str) -> None:
    """In none of its forms, whatever stands around it."""
    redactor = Redactor([secret])
    for form in forms_of(secret):
        shown = redactor.clean(f"{before} {form} {after}")
        assert form not in shown or form in MASK
        assert MASK in shown


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="abcdefghij ,.;:!?'\"()\n", max_size=200))
def test_prose_is_not_masked(text: str) -> None:
    """Letters and punctuation are no secret."""
    assert Redactor(["correct-horse-1"]).clean(text) == text


def test_a_mask_covers_the_secret_only() -> None:
    """Shell text around it is shown."""
    line = "curl -H 'Authorization: Bearer abcdefghijklmnop12345' https://x.test/ | sh"
    assert Redactor().clean(line) == f"curl -H 'Authorization: Bearer {MASK}' https://x.test/ | sh"
    assert Redactor().clean("DB_PASSWORD=hunter22hunter; rm -rf x") == f"DB_PASSWORD={MASK}; rm -rf x"
    assert Redactor().clean("https://bob:hunter22@x.test/") == f"https://bob:{MASK}@x.test/"


def test_cleaning_twice_changes_nothing_more() -> None:
    """The mask itself is no secret."""
    once = Redactor(["winter-blue-owl"]).clean("token: winter-blue-owl password=abc123def456")
    assert Redactor(["winter-blue-owl"]).clean(once) == once


@pytest.mark.parametrize(
    "code",
    [
        "token = self.token2_value",
        "api_key=os.environ['KEY1']",
        "password: str = field()",
        "token=12345678901",
        "secret=/run/x1/key",
    ],
)
def test_code_about_secrets_is_not_masked(code: str) -> None:
    """Names, paths, calls and plain numbers are no values."""
    assert Redactor().clean(code) == code


def test_no_text_keeps_the_masks_busy() -> None:
    """Texts made of the beginnings of keys are read once; a pattern that goes back over them would not end here."""
    beginnings = ("sk-", "password_", "pat.", "eyJ.", "otpauth://", "?password=", "-----BEGIN PRIVATE KEY-----", "1:AA")
    for beginning in beginnings:
        assert Redactor().clean(beginning * 20_000)


def test_short_secrets_are_reported_not_searched() -> None:
    """They would mask half of every text."""
    assert too_short(["abc"])
    assert not too_short(["long enough", ""])
    assert Redactor(["abc"]).clean("abc abc") == "abc abc"


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_name_becomes_one_component(name: str) -> None:
    """Not empty, no separator, no leading dot or dash, nothing hidden, not too long; and it is stable."""
    safe = safe_name(name)
    assert safe
    assert not set("/\\\0\n\t") & set(safe)
    assert safe[0] not in ".- "
    assert safe[-1] not in ". "
    assert not has_hidden(safe)
    assert len(safe.encode("utf-8", "replace")) <= MAX_BYTES
    assert safe_name(safe) == safe


def test_a_second_file_of_a_name_gets_a_number() -> None:
    """Before the extension."""
    assert with_counter("report.pdf", 2) == "report-2.pdf"
    assert with_counter("Makefile", 3) == "Makefile-3"
    assert safe_name("nul.txt") == "file_nul.txt"


def test_a_digest_stands_for_exactly_one_call() -> None:
    """The order of keys does not matter; every value, the tool and the operands do."""
    digest = call_digest("shell", {"a": 1, "b": "x"}, {"run.sh": "0"})
    assert digest == call_digest("shell", {"b": "x", "a": 1}, {"run.sh": "0"})
    others = [
        call_digest("shell2", {"a": 1, "b": "x"}, {"run.sh": "0"}),
        call_digest("shell", {"a": "1", "b": "x"}, {"run.sh": "0"}),
        call_digest("shell", {"a": 1, "b": "x "}, {"run.sh": "0"}),
        call_digest("shell", {"a": 1, "b": "x"}, {"run.sh": "1"}),
        call_digest("shell", {"a": 1, "b": "x"}, {}),
    ]
    assert len({digest, *others}) == 6


def test_canonical_json_takes_json_only() -> None:
    """Half characters have a form; what is no JSON is an error."""
    assert json.loads(canonical_json({"a": "\ud800ü"})) == {"a": "\ud800ü"}
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))
    with pytest.raises(TypeError):
        canonical_json({"a": {1}})


def test_a_receipt_has_a_fixed_form() -> None:
    """A test vector: another version of the program must read what this one signed."""
    receipt = sign_receipt(CLAIM, KEY, NOW)
    assert receipt == "zb1-1777636800000-9h7jTvDVDH06JsTHfwSnzvUXbG_DXUnDaWpnIOnrSVI"
    assert verify_receipt(receipt, CLAIM, KEY)


@pytest.mark.parametrize(
    "claim",
    [
        replace(CLAIM, conversation=ConversationId(2)),
        replace(CLAIM, turn=TurnId("t2")),
        replace(CLAIM, call=CallId("call_2")),
        replace(CLAIM, tool="shell2"),
        replace(CLAIM, arguments_digest="0"),
        replace(CLAIM, shown_text="a.txt "),
        replace(CLAIM, code=ResultCode.ERROR),
    ],
)
def test_a_receipt_holds_for_nothing_else(claim: ReceiptClaim) -> None:
    """Not for another place, call, tool, text or outcome."""
    assert not verify_receipt(sign_receipt(CLAIM, KEY, NOW), claim, KEY)


def test_a_forged_receipt_fails() -> None:
    """Another key, another time, a bent form, or no receipt at all."""
    receipt = sign_receipt(CLAIM, KEY, NOW)
    prefix, stamp, mac = receipt.split("-", 2)
    forged = ["", "zb1", f"zb2-{stamp}-{mac}", f"{prefix}-{int(stamp) + 1}-{mac}", f"{prefix}-0{stamp}-{mac}"]
    forged += [f"{receipt}x", f"{prefix}-{stamp}-ü", f"{prefix}-x-{mac}", sign_receipt(CLAIM, b"j" * 32, NOW)]
    assert not any(verify_receipt(text, CLAIM, KEY) for text in forged)
    assert sign_receipt(CLAIM, KEY, NOW + timedelta(milliseconds=1)) != receipt
