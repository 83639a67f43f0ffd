"""What only Slack has, through the whole daemon."""

from __future__ import annotations

import re

from tests.channels.slack.town import SlackTown
from tests.platforms.model_script import says, status

COMMAND = re.compile(r"(?<![\w/])[/!]([a-z]+)")
"""A command as it stands in a text."""


async def test_commands_are_told_as_they_can_be_typed_there(town: SlackTown) -> None:
    """Slack keeps the slash for itself, so our own texts name no command by it; what a model writes stays as it is."""
    town.model.answers(says("Type /help or /pair CODE."))
    town.model.always(status(400, message="context_length_exceeded: maximum context length is 10 tokens"))
    async with town.daemon():
        town.xen.says("hello?")
        stranger = await town.xen.chat.reply("don't know you")
        code = re.search(r"\b[A-Z0-9]{8}\b", stranger.text)
        assert code
        town.olga.says(f"!pair {code[0]}")
        welcome = await town.xen.chat.reply("You are in")
        answers = [stranger, welcome]
        for text, part in (
            ("!help", "unfreeze"),
            ("!approve", "Which one"),
            ("!memory what", "correct NUMBER"),
        ):
            town.olga.says(text)
            answers.append(await town.olga.chat.reply(part))
        answers.append(await town.olga.commands("hepl").answered())
        town.uma.says("how do I begin?")
        await town.uma.chat.reply("Type /help or /pair CODE.")
        town.uma.says("and then?")
        answers.append(await town.uma.chat.reply("start afresh"))
    found = [match for answer in answers for match in COMMAND.finditer(answer.text)]
    assert {match[1] for match in found} >= {"pair", "help", "approve", "memory", "new"}
    assert [match[0] for match in found if match[0].startswith("/")] == []
