"""What `zerobot doctor` says of a mailbox."""

from __future__ import annotations

from channels.email.check import check_channel
from channels.email.settings import EmailSettings
from tests.channels.email.layouts import FASTMAIL, MAIL
from tests.platforms.certificates import Authority
from tests.platforms.email_house import MX, EmailHouse, email_house, received, table
from tests.platforms.imap_server import USER, ImapServer
from tests.platforms.smtp_server import SmtpServer
from zerobot.core.channel import Finding


async def findings(house: EmailHouse, **changes: object) -> list[Finding]:
    settings = EmailSettings.model_validate(table(house.imap, house.smtp) | changes)
    return [finding async for finding in check_channel(settings, house.services)]


def said(found: list[Finding], level: str) -> str:
    return "\n".join(f"{each.text}; {each.advice}" for each in found if each.level == level)


async def test_all_is_well() -> None:
    """Both servers let us in; whose results there are, and where copies go."""
    async with email_house() as house:
        house.writes("Hello")
        found = await findings(house)
        assert {each.level for each in found} == {"ok"}
        text = said(found, "ok")
        assert f"{USER} is let in; INBOX has 1 mails" in text
        assert "copies of answers are in Sent" in text
        assert f"written results as: {MX} (1); 1 prove their sender" in text
        assert "lets us hand mails in" in text
        assert house.smtp.mails == []


async def test_an_empty_folder_says_nothing_of_senders() -> None:
    """Whoever has just made the mailbox learns what to do."""
    async with email_house() as house:
        assert "write to the bot from outside and ask again" in said(await findings(house), "ok")


async def test_the_wrong_id_is_told_with_the_right_one() -> None:
    """A newcomer writes any id and finds the true one here."""
    async with email_house() as house:
        house.writes("Hello")
        warned = said(await findings(house, trusted_authserv=["unknown"]), "warn")
        assert f"{MX} (1)" in warned
        assert "put your server's own id into trusted_authserv" in warned


async def test_a_server_that_writes_no_results_is_told_with_the_other_way() -> None:
    """There is no id to be found then."""
    async with email_house() as house:
        house.imap.deliver(house.mail("Hello", sender="ann@example.com"))
        assert 'verify_sender = "dkim"' in said(await findings(house), "warn")


async def test_servers_that_hand_mail_on_are_named() -> None:
    """Their addresses are private; a stranger's address below which anybody wrote our id is not advised."""
    async with email_house() as house:
        house.imap.deliver((FASTMAIL + MAIL).replace("\n", "\r\n").encode() + b"\r\n")
        advice = said(await findings(house, trusted_authserv=["mx2.messagingengine.com"]), "warn")
        assert "(10.202.2.201) into trusted_relays" in advice
        house.imap.deliver(received(b"", "ann@example.com", house.clock.now()).replace(b"203.0.113.9", b"198.51.100.7"))
        assert "198.51.100.7" not in said(await findings(house, trusted_authserv=["mx2.messagingengine.com"]), "warn")


async def test_a_private_authority_is_told_with_its_key(authority: Authority) -> None:
    """By both servers."""
    tls = authority.server_context("DNS:localhost")
    async with ImapServer(tls, implicit=True) as imap, SmtpServer(tls=tls, security="tls") as smtp:
        house = EmailHouse(imap, smtp)
        table = {"imap_security": "tls", "smtp_security": "tls", "imap_host": "localhost", "smtp_host": "localhost"}
        failed = said(await findings(house, **table), "fail")
        await house.close()
    assert failed.count("a private CA is named by tls_ca_file") == 2
    assert "connect: its certificate is not trusted" in failed


async def test_anybody_as_anybody_is_warned_about() -> None:
    """`verify_sender = "off"` lists the ids as well."""
    async with email_house() as house:
        house.writes("Hello")
        found = await findings(house, verify_sender="off", trusted_authserv=[])
        assert f"{MX} (1)" in said(found, "ok")
        assert "anybody can write as anybody" in said(found, "warn")


async def test_a_server_that_is_not_there_is_told_with_its_keys() -> None:
    """Each server by its own."""
    async with SmtpServer() as gone:
        port = gone.port
    async with email_house() as house:
        reading = said(await findings(house, imap_port=port), "fail")
        assert "check the network, and imap_host, imap_port and imap_security" in reading
        sending = said(await findings(house, smtp_port=port), "fail")
        assert f"127.0.0.1:{port} cannot be reached for sending" in sending
        assert "check the network, and smtp_host, smtp_port and smtp_security" in sending


async def test_a_wrong_password_is_told_by_both() -> None:
    """And never shown."""
    async with email_house() as house:
        failed = said(await findings(house, password="not-the-password"), "fail")
        assert "the mail server refuses the account" in failed
        assert "takes no mail from us: login: 535" in failed
        assert "not-the-password" not in failed


async def test_a_folder_that_is_missing_is_told() -> None:
    """It is a fault of the configuration."""
    async with email_house() as house:
        assert "there is no folder Bots" in said(await findings(house, folder="Bots"), "fail")
