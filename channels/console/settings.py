"""The table of the terminal as a channel."""

from typing import ClassVar

from zerobot.core.channel_settings import ChannelSettings


class ConsoleSettings(ChannelSettings):
    """A table `[channels.NAME]` of kind `console`.

    Whoever sits at the terminal is the operator `console:local`, alone, so that who may talk is no setting here.
    """

    allowed_users: ClassVar[tuple[str, ...]] = ("*",)  # type: ignore[misc]  # a key of other channels, fixed here
    pairing: ClassVar[bool] = False  # type: ignore[misc]  # the same
    require_mention: ClassVar[bool] = False  # type: ignore[misc]  # the same
