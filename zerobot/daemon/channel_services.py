"""What every channel is given, whether it runs or is only looked at."""

from zerobot.core.channel import ChannelServices, ChannelState
from zerobot.core.clock import Clock
from zerobot.core.log import EventLog
from zerobot.daemon.chat_commands import COMMANDS
from zerobot.daemon.http import HttpClients
from zerobot.security.filenames import safe_name
from zerobot.security.visible import escape


def channel_services(name: str, http: HttpClients, clock: Clock, log: EventLog, state: ChannelState) -> ChannelServices:
    """The services of one channel.

    Args:
        name: The channel's table.
        http: Makes the guarded client when it is first asked for.
        clock: The time.
        log: Gets the channel's events.
        state: What the channel keeps over a restart.
    """
    return ChannelServices(
        name=name,
        http=http.guarded,
        escape=escape,
        safe_name=safe_name,
        clock=clock,
        log=log,
        commands=COMMANDS,
        state=state,
    )
