"""Getting into a mailbox as it is configured: connected, logged in, introduced."""

from __future__ import annotations

import ssl
from importlib.metadata import version

from channels.email.imap.errors import ImapLostError, ImapNoError, ImapRefusedError
from channels.email.imap.line import Endpoint, Patience
from channels.email.imap.mailbox import Imap
from channels.email.oauth import AccessTokens, TokenError
from channels.email.settings import EmailSettings
from zerobot.core.errors import ChannelFaultError


async def open_mailbox(
    settings: EmailSettings,
    name: str,
    context: ssl.SSLContext,
    tokens: AccessTokens | None = None,
    patience: Patience | None = None,
) -> Imap:
    """Connect to the mail server and log in; no folder is selected yet.

    Args:
        settings: The table.
        name: The table's name, for advice.
        context: Whom to trust; made once by `tls.make_context`.
        tokens: Where access tokens come from, if they are used in place of a password.
        patience: How long the server gets for what.

    Raises:
        ImapLostError: It did not work now; try again later.
        ChannelFaultError: It will not work before somebody mends something.
        StorageError: A newer refresh token could not be kept.
    """
    endpoint = Endpoint(settings.imap_host, settings.imap_port, settings.imap_security, context)
    try:
        try:
            return await _entered(endpoint, settings, tokens, patience)
        except ImapRefusedError as error:
            # A token may have been revoked before its time; a fresh one tells.
            if tokens is None or error.passing or error.code == "LOGINDISABLED":
                raise
            return await _entered(endpoint, settings, tokens, patience)
    except ImapRefusedError as error:
        if error.passing:
            raise ImapLostError(str(error)) from error
        raise _fault(error, name, by_token=tokens is not None) from error
    except (ImapNoError, TokenError) as error:
        raise ImapLostError(str(error)) from error


async def _entered(
    endpoint: Endpoint, settings: EmailSettings, tokens: AccessTokens | None, patience: Patience | None
) -> Imap:
    # Before anything else: a login that takes its time to come by a token may be cut off by the server.
    token = None if tokens is None else await tokens.token()
    imap = await Imap.connect(endpoint, patience)
    try:
        if settings.password is not None:
            await imap.log_in(settings.account, settings.password.get_secret_value())
        elif tokens is not None and token is not None:
            await imap.log_in_by_token(settings.account, token)
        await imap.introduce("zerobot", version("zerobot"))
    except BaseException as error:
        if isinstance(error, ImapRefusedError) and tokens is not None and token is not None:
            tokens.reject(token)
        await imap.close()
        raise
    return imap


def _fault(error: ImapRefusedError, name: str, *, by_token: bool) -> ChannelFaultError:
    key = f"[channels.{name}]"
    if error.code == "LOGINDISABLED":
        how = "write password in place of the oauth2 table" if by_token else "write an oauth2 table, or other imap_..."
        return ChannelFaultError(f"the mail server does not let us log in like this: {error}", advice=f"{how} in {key}")
    if by_token:
        advice = f"check username in {key}, and that the scope of the granted access covers IMAP"
    else:
        advice = (
            f"check username and password in {key}; large providers want an app password, or oauth2, and IMAP switched "
            "on in the account"
        )
    return ChannelFaultError(f"the mail server refuses the account: {error}", advice=advice)
