"""The table of a mailbox."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address, ip_network
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, Strict, field_validator, model_validator

from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.settings import Duration, Secret, Section, Size, Text, Texts, WebAddress

_ENCODED = 1.4
"""How much larger a file is in a mail: base64 and its line ends."""
_BESIDE_FILES = 2_000_000
"""Bytes of a mail beside its attachments: texts in two forms, pictures of signatures, headers."""

Security = Literal["tls", "starttls", "none"]
"""How a connection is protected; `none` is taken for a loopback address only."""


_NO_ADDRESS = 'is no address; write "bot@example.com"'
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?")
_AUTHSERV = re.compile(r"(?:\*\.)?[^\s;()\"=*]+")


def _address(text: str) -> str:
    local, _, domain = text.rpartition("@")
    if not (local and domain) or any(character.isspace() or character in "<>,:*" for character in text):
        raise ValueError(_NO_ADDRESS)
    return f"{local.lower()}@{_ascii(domain.lower())}"


def _ascii(domain: str) -> str:
    """A domain as mails have it (RFC 5891)."""
    if domain.isascii():
        return domain
    import idna  # noqa: PLC0415 -- 10 ms that hardly any domain needs

    try:
        return idna.encode(domain, strict=True).decode()
    except idna.IDNAError:
        raise ValueError(_NO_ADDRESS) from None


def _user(text: str) -> str:
    if text == "*":
        return text
    try:
        return _address(f"x{text}")[1:] if text.startswith("@") else _address(text)
    except ValueError:
        told = f'{text!r} is no address and no domain; write "ann@example.com", "@example.com" or "*"'
        raise ValueError(told) from None


def _host(text: str) -> str:
    if not _NAME.fullmatch(text):
        try:
            ip_address(text)
        except ValueError:
            raise ValueError('is no host; write "mail.example.com", and its port into a key of its own') from None
    return text


def _file(text: str) -> str:
    path = os.path.expanduser(text)  # noqa: PTH111 -- pathlib's own raises for an unknown home directory
    if path and not os.path.isabs(path):  # noqa: PTH117 -- the same
        raise ValueError("is relative; write an absolute path, or one that begins with ~/")
    return path


Address = Annotated[str, AfterValidator(_address)]
"""A mail address: in lower case, its domain in ASCII."""

Host = Annotated[str, Field(min_length=1), AfterValidator(_host)]
"""A server's name or address, without a port."""

Port = Annotated[int, Field(ge=1, le=65_535)]


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name or its address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class OAuth2Settings(Section):
    """How an access token is got instead of a password (RFC 6749, section 6; XOAUTH2)."""

    client_id: Text = Field(description="The client's id, as the provider shows it where the app is registered.")
    client_secret: Secret | None = Field(default=None, description="The client's secret; absent: it has none.")
    refresh_token: Secret = Field(
        description="The token by which access tokens are got; newer ones are kept by itself."
    )
    token_url: WebAddress = Field(description="Where access tokens are got.")
    scope: Text | None = Field(default=None, description="The scope to ask for; absent: the token's own.")


class EmailSettings(ChannelSettings):
    """A table `[channels.NAME]` of kind `email`."""

    address: Address = Field(description="The bot's own address: what its answers come from.")
    aliases: Annotated[tuple[Address, ...], Strict(strict=False)] = Field(
        default=(),
        description="Other addresses of the bot's. A mail that names none of its addresses in To or CC is let be.",
    )
    display_name: Text | None = Field(default=None, description="The name beside the address in answers; absent: none.")
    username: Text | None = Field(default=None, description="The account on both servers; absent: the address.")
    password: Secret | None = Field(default=None, description="The account's password, or an app password.")
    oauth2: OAuth2Settings | None = Field(default=None, description="Access tokens instead of a password.")
    imap_host: Host = Field(description="The server that mail is read from.")
    imap_port: Port = Field(default=993, description="Its port: 993 for tls, 143 for starttls.")
    imap_security: Security = Field(default="tls", description="tls, starttls, or none (only to a loopback address).")
    smtp_host: Host = Field(description="The server that answers are handed to.")
    smtp_port: Port = Field(default=465, description="Its port: 465 for tls, 587 for starttls.")
    smtp_security: Security = Field(default="tls", description="tls, starttls, or none (only to a loopback address).")
    tls_ca_file: Annotated[str, AfterValidator(_file)] = Field(
        default="", description="A file of certificates (PEM) that are trusted beside the usual ones: a private CA."
    )
    folder: Text = Field(default="INBOX", description="The folder in which new mail is looked for.")
    drafts: Literal["off"] = Field(default="off", description="off: a mail that was sent cannot be changed.")
    pairing: bool = Field(default=False, description="Whether a stranger whose address is proved gets a code by mail.")
    approval_timeout: Annotated[Duration, Field(gt=0, le=30 * 86_400)] | None = Field(
        default=86_400.0,
        description="How long an approval asked here, or by mail to operators, may wait; more than 0, at most 30d.",
    )
    processed_folder: Text | None = Field(
        default=None,
        description="Where a mail is moved once it is taken in; absent: it stays, marked as read.",
    )
    sent_copy: Literal["append", "server", "off"] = Field(
        default="append",
        description="append: the bot puts a copy of each answer into the sent folder; server: the server does so by "
        "itself (Gmail); off: no copies.",
    )
    sent_folder: Text | None = Field(
        default=None, description="The folder of sent mail; absent: the one the server names."
    )
    verify_sender: Literal["authentication-results", "dkim", "off"] = Field(
        default="authentication-results",
        description="How From is proved: by what the receiving server found (authentication-results), by the bot's own "
        "check of signatures (dkim), or not at all (off: anybody can write as anybody).",
    )
    trusted_authserv: Texts = Field(
        default=(),
        description="Whose Authentication-Results count: the ids that your own mail server writes; zerobot doctor "
        "shows those of your last mails. *.example.com names all below example.com.",
    )
    trusted_relays: Texts = Field(
        default=(),
        description="The addresses or networks from which your own servers hand mail to one another, such as "
        "10.1.0.0/16: for a server whose results stand below several Received fields of its own.",
    )
    trust_submitted: bool = Field(
        default=False,
        description="Whether mail counts that another account handed in at your own server, which proves no sender.",
    )
    answer_backlog: bool = Field(
        default=False, description="Whether unread mail that is there at the first start is answered."
    )
    reply_to_all: bool = Field(
        default=False, description="Whether answers go to those in CC as well, who are no users for that."
    )
    answers_per_hour: Annotated[int, Field(ge=1, le=1_000)] = Field(
        default=10, description="Answers in one thread, and to one correspondent, within an hour; more is a loop."
    )
    idle_renewal: Annotated[Duration, Field(ge=1, le=28 * 60)] = Field(
        default=540.0, description="How long one IDLE lasts before it is renewed; at most 28m (RFC 2177)."
    )
    poll_interval: Annotated[Duration, Field(ge=1, le=3_600)] = Field(
        default=60.0, description="How often it is looked where the server has no IDLE."
    )
    # A mail grows by a third as it is sent; 25 MB is what the large providers take.
    max_attachment: Size = Field(
        default=25_000_000, description="The largest attachment that is fetched; 0: none; absent: 25MB."
    )

    @property
    def own_addresses(self) -> frozenset[str]:
        """The bot's addresses."""
        return frozenset({self.address, *self.aliases})

    @property
    def account(self) -> str:
        """Who logs in."""
        return self.username or self.address

    @property
    def most_of_a_mail(self) -> int:
        """Bytes of a mail that are fetched, so that the largest attachment is among them."""
        return int(self.max_attachment * _ENCODED) + _BESIDE_FILES

    @field_validator("allowed_users")
    @classmethod
    def _people(cls, users: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_user(user) for user in users)

    @field_validator("trusted_authserv")
    @classmethod
    def _ids(cls, ids: tuple[str, ...]) -> tuple[str, ...]:
        for each in ids:
            if not _AUTHSERV.fullmatch(each):
                raise ValueError(f'{each!r} is no id; write the first word of the field alone, as "mx.example.com"')
        return ids

    @field_validator("trusted_relays")
    @classmethod
    def _networks(cls, relays: tuple[str, ...]) -> tuple[str, ...]:
        for relay in relays:
            try:
                ip_network(relay)
            except ValueError:
                raise ValueError(f'{relay!r} is no address and no network; write "10.1.2.3" or "10.1.0.0/16"') from None
        return relays

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.password is None) == (self.oauth2 is None):
            raise ValueError("needs either password or an oauth2 table")
        for name, security, host in (
            ("imap", self.imap_security, self.imap_host),
            ("smtp", self.smtp_security, self.smtp_host),
        ):
            if security == "none" and not is_loopback(host):
                raise ValueError(
                    f'{name}_security = "none" would send the password and all mail in the open; write "tls" or '
                    f'"starttls" ("none" is for a loopback address)'
                )
        if self.verify_sender == "authentication-results" and not self.trusted_authserv:
            raise ValueError(
                "trusted_authserv is empty, so no sender could be proved: write the id of your own mail server. It is "
                "the first word of the topmost Authentication-Results field of a mail that you have received; with "
                'verify_sender = "off" set for the moment, zerobot doctor lists the ids of your last 20 mails'
            )
        return self
