"""Secrets in texts, and names of attachments, with known right answers."""

import email.header

import pytest

from tests.security.cases import Case, ident, judge_masked, judge_saved_name, load, secret_text, secrets_of
from zerobot.security.filenames import safe_name
from zerobot.security.redact import Redactor

WHOLE_TEXTS = [case for case in load("redact") if case["tier"] < 3]


@pytest.mark.parametrize("case", WHOLE_TEXTS, ids=ident)
def test_a_secret_is_masked_and_what_only_looks_like_one_is_not(case: Case) -> None:
    """Keys, configured secrets and shapes go; look-alikes and the words around stay."""
    redactor = Redactor(secrets_of(case) if case.get("configured") else ())
    assert judge_masked(case, redactor.clean(secret_text(case))) == []


def _received(case: Case) -> str:
    if not case.get("mime"):
        return str(case["name"])
    return str(email.header.make_header(email.header.decode_header(case["name"])))


@pytest.mark.parametrize("case", [case for case in load("filenames") if "name" in case], ids=ident)
def test_a_name_from_outside_becomes_one_harmless_component(case: Case) -> None:
    """Whatever a platform or a mail says, one path component comes of it."""
    assert judge_saved_name(case, safe_name(_received(case))) == []
