"""The keys that the table of every chat channel has; an adapter's own model adds the platform's."""

from typing import Annotated, Literal

from pydantic import Field

from zerobot.core.settings import Duration, Section, Text, Users


class ChannelSettings(Section):
    """A table `[channels.NAME]`."""

    enabled: bool = Field(default=True, description="Whether the daemon opens this channel.")
    kind: Text = Field(
        default="", validate_default=False, description="The kind of channel; absent: the name of the table."
    )
    allowed_users: Users = Field(
        default=(),
        description='Who may talk to the bot: ids or names as the platform writes them; ["*"]: everyone; '
        "empty or absent: nobody but operators and those who were paired.",
    )
    pairing: bool = Field(
        default=True,
        description="Whether an unknown user in a direct chat gets a code, and operators are asked to let them in.",
    )
    require_mention: bool = Field(
        default=True, description="Whether the bot answers in groups only when it is mentioned or replied to."
    )
    drafts: Literal["edit", "off"] = Field(
        default="edit",
        description="edit: the reply grows in an edited message while it is written; off: only replies.",
    )
    agent: Text = Field(default="default", description="The agent that answers: default, or the NAME of [agents.NAME].")
    notice_after: Duration | None = Field(
        default=None,
        description="After how long a turn says once that it is still at work, where nothing else shows it; 0: never; "
        "absent: as the kind of channel has it.",
    )
    approval_timeout: Annotated[Duration, Field(gt=0, le=30 * 86_400)] | None = Field(
        default=None,
        description="How long an approval asked here may wait; more than 0, at most 30d; "
        "absent: security.approval_timeout.",
    )
