"""What `zerobot doctor` asks: whether both servers let us in, whose word on senders there is, what was refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence

from channels.email.account import Account, sent_folder
from channels.email.imap.errors import ImapError, ImapNoError, ImapUntrustedError
from channels.email.imap.mailbox import Imap
from channels.email.proof.authenticity import Proof, ProofRules, prove_by_results
from channels.email.reading.mime import read_mail
from channels.email.refusals import counted
from channels.email.settings import EmailSettings
from channels.email.smtp.line import Deadlines, LineLostError, SmtpLine, SmtpRefusalError
from zerobot.core.channel import ChannelServices, Finding
from zerobot.core.errors import ChannelFaultError, ZerobotError

LOOKED_AT = 20
"""The newest mails whose results are looked at."""
_CA = "a private CA is named by tls_ca_file"


async def check_channel(settings: EmailSettings, services: ChannelServices) -> AsyncIterator[Finding]:
    """Log in to both servers, and look at the newest mails; a line each."""
    account = Account(settings, services)
    async for finding in _reading(account, settings, services):
        yield finding
    yield await _sending(account, settings, services.name)
    refused = await counted(services.state)
    if refused:
        told = ", ".join(f"{count} {why}" for why, count in sorted(refused.items(), key=lambda each: -each[1]))
        yield Finding("ok", services.name, f"mails that were not answered so far: {told}")


async def _reading(account: Account, settings: EmailSettings, services: ChannelServices) -> AsyncIterator[Finding]:
    name, where = services.name, f"{settings.imap_host}:{settings.imap_port}"
    try:
        imap = await account.mailbox()
    except ChannelFaultError as error:
        yield Finding("fail", name, str(error), error.advice)
        return
    except ImapError as error:
        untrusted = isinstance(error, ImapUntrustedError)
        advice = (
            f"check imap_host; {_CA}" if untrusted else "check the network, and imap_host, imap_port and imap_security"
        )
        yield Finding("fail", name, f"{where} does not let us in: {error}", advice)
        return
    try:
        async for finding in _folders(imap, settings, name):
            yield finding
    except ImapError as error:
        yield Finding("fail", name, f"{where} broke off: {error}", "try again later")
    finally:
        await imap.close()


async def _folders(imap: Imap, settings: EmailSettings, name: str) -> AsyncIterator[Finding]:
    try:
        folder = await imap.select(settings.folder)
    except ImapNoError as error:
        yield Finding("fail", name, f"there is no folder {settings.folder}: {error}", "check folder")
        return
    how = (
        "new mail is told at once (IDLE)" if imap.can_idle else f"it is looked into every {settings.poll_interval:g} s"
    )
    yield Finding("ok", name, f"{settings.account} is let in; {settings.folder} has {folder.exists} mails; {how}")
    if settings.sent_copy != "off":
        sent = settings.sent_folder or await sent_folder(imap)
        yield Finding("ok", name, f"copies of answers are in {sent}")
    async for finding in _senders(imap, settings, name):
        yield finding


async def _senders(imap: Imap, settings: EmailSettings, name: str) -> AsyncIterator[Finding]:
    """Whose results the newest mails bear, and how many of them prove their sender."""
    rules = ProofRules.of(settings)
    newest = await imap.headers((await imap.new_uids(0))[-LOOKED_AT:])
    proofs = [prove_by_results(read_mail(entry.body or b""), rules) for entry in newest]
    ids = Counter(each for proof in proofs for each in proof.authserv_ids)
    seen = ", ".join(f"{each} ({count})" for each, count in ids.most_common()) or "none"
    text = f"of the newest {len(newest)} mails my mail server has written results as: {seen}"
    proved = sum(proof.address is not None for proof in proofs)
    if not newest:
        told = f"{settings.folder} is empty, so it is not known yet whether senders can be proved"
        yield Finding("ok", name, f"{told}; write to the bot from outside and ask again")
    elif settings.verify_sender != "authentication-results":
        yield Finding("ok", name, text)
    elif not proved:
        yield Finding("warn", name, f"{text}; by trusted_authserv none of them proves its sender", _advice(proofs))
    else:
        yield Finding("ok", name, f"{text}; {proved} prove their sender")
    if settings.verify_sender == "off":
        advice = 'use "authentication-results" or "dkim" unless nobody outside can write to this mailbox'
        yield Finding("warn", name, "verify_sender is off: anybody can write as anybody, operators included", advice)


def _advice(proofs: Sequence[Proof]) -> str:
    """What to change where no mail proves its sender."""
    # A stranger's server writes results of any id below its own address; only one of a network of ours may be ours.
    peers = {proof.border.peer for proof in proofs if proof.reason == "below_border" and proof.border is not None}
    relays = sorted(str(peer) for peer in peers if peer is not None and peer.is_private)
    if relays:
        these = ", ".join(relays)
        return (
            f"the results stand below servers that hand mail on: put those that are yours ({these}) into trusted_relays"
        )
    if any(proof.authserv_ids for proof in proofs):
        return "put your server's own id into trusted_authserv; docs/channels/email.md says how to find it"
    return (
        'where mails from outside bear no results, verify_sender = "dkim" has signatures checked; where they stand '
        "below several Received fields of your own servers, see trusted_relays"
    )


async def _sending(account: Account, settings: EmailSettings, name: str) -> Finding:
    where = f"{settings.smtp_host}:{settings.smtp_port}"
    try:
        line = await SmtpLine.open(account.outgoing(), Deadlines())
    except LineLostError as error:
        advice = "check the network, and smtp_host, smtp_port and smtp_security"
        return Finding("fail", name, f"{where} cannot be reached for sending: {error}", advice)
    except SmtpRefusalError as error:
        advice = "check username and password" if error.stage == "login" else f"check smtp_host and smtp_port; {_CA}"
        return Finding("fail", name, f"{where} takes no mail from us: {error}", advice)
    except ZerobotError as error:
        advice = error.advice if isinstance(error, ChannelFaultError) else "try again later"
        return Finding("fail", name, f"no mail can be sent: {error}", advice)
    line.leave()
    return Finding("ok", name, f"{where} lets us hand mails in")
