"""What a channel's table says about proofs."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from pydantic import ValidationError

from channels.email.proof.authenticity import ProofRules
from channels.email.proof.domains import is_trusted, may_sign_for
from channels.email.settings import EmailSettings

TABLE: dict[str, Any] = {
    "address": "Bot@Bots.Test",
    "password": "secret-1234",
    "imap_host": "imap.bots.test",
    "smtp_host": "smtp.bots.test",
    "trusted_authserv": ["mx.bots.test"],
}


def test_the_rules_are_those_of_the_table() -> None:
    """Relays are addresses or networks."""
    settings = EmailSettings.model_validate(
        {**TABLE, "trusted_relays": ["10.1.0.0/16", "::1"], "trust_submitted": True}
    )
    assert ProofRules.of(settings) == ProofRules(
        method="authentication-results",
        own_domain="bots.test",
        trusted=("mx.bots.test",),
        relays=(ip_network("10.1.0.0/16"), ip_network("::1")),
        trust_submitted=True,
    )


@pytest.mark.parametrize("relay", ["mx.bots.test", "10.1.0.1/16", "10.1", "*"])
def test_a_relay_is_an_address(relay: str) -> None:
    """A name is what a client says of itself."""
    with pytest.raises(ValidationError, match=r"is no address and no network; write \"10.1.2.3\""):
        EmailSettings.model_validate({**TABLE, "trusted_relays": [relay]})


def test_an_id_is_trusted_by_name_or_by_star() -> None:
    """Case and a dot at the end make no difference; a star is one label or more."""
    assert is_trusted("MX.bots.test.", ("mx.bots.test",))
    assert is_trusted("a.b.bots.test", ("x.test", "*.bots.test"))
    assert not any(is_trusted(each, ("*.bots.test",)) for each in ("bots.test", "evilbots.test", ".bots.test", ""))
    assert not is_trusted("", ("",))


def test_a_domain_signs_for_itself_and_for_what_is_below() -> None:
    """Not for what is above or beside it, and no single label for others."""
    assert may_sign_for("good.test", "good.test")
    assert may_sign_for("Good.Test.", "a.b.good.test")
    assert may_sign_for("intranet", "intranet")
    wrong = [("a.good.test", "good.test"), ("a.good.test", "b.good.test"), ("test", "good.test"), ("", "good.test")]
    assert not any(may_sign_for(signer, domain) for signer, domain in [*wrong, ("ood.test", "good.test"), ("", "")])
