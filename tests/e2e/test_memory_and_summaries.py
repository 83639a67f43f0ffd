"""What the bot remembers, and what it sums up, through the daemon."""

from tests.e2e.stage import Stage
from tests.platforms.model_script import calls, says


async def test_what_is_remembered_comes_back_with_a_later_question(stage: Stage) -> None:
    """A fact that the model kept stands before a question that it fits; its owner can have it forgotten."""
    stage.model.answers(
        calls("remember", id="c1", key="favourite tea", text="Olga likes Darjeeling tea"),
        says("Noted."),
        says("Darjeeling."),
    )
    async with stage.daemon():
        stage.olga.says("remember that I like Darjeeling tea")
        await stage.olga.chat.reply("Noted.")
        stage.olga.says("which tea is my favourite tea?")
        await stage.olga.chat.reply("Darjeeling.")
        assert "Olga likes Darjeeling tea" in str(stage.model.last_request.messages[-1])
        stage.olga.says("/memory")
        await stage.olga.chat.reply("favourite tea")
        stage.olga.says("/memory correct 1 Olga likes Assam tea")
        await stage.olga.chat.reply("Corrected; it is number 2 now.")
        stage.olga.says("/memory export")
        exported = await stage.olga.chat.reply("(since ")
        assert "favourite tea: Olga likes Assam tea" in exported.text
        assert "Darjeeling" not in exported.text
        stage.olga.says("/memory remember this")
        await stage.olga.chat.reply("/memory forget NUMBER")
        stage.olga.says("/memory correct 7 nothing")
        await stage.olga.chat.reply("I remember nothing of yours under that number.")
        stage.olga.says("/memory forget 2")
        await stage.olga.chat.reply("Forgotten.")
        stage.olga.says("/memory")
        await stage.olga.chat.reply("I remember nothing here yet.")


async def test_a_conversation_is_summed_up_on_demand(stage: Stage) -> None:
    """After /compact the model reads a summary instead of the old messages, and the newest as they were."""
    async with stage.daemon():
        for number in range(8):
            stage.model.answers(says(f"answer {number}"))
            stage.olga.says(f"question {number}")
            await stage.olga.chat.reply(f"answer {number}")
        stage.model.answers(says("They spoke of eight questions."), says("Yes."))
        stage.olga.says("/compact")
        await stage.olga.chat.reply("are summed up now")
        stage.olga.says("do you still know?")
        await stage.olga.chat.reply("Yes.")
    sent = str(stage.model.last_request.messages)
    assert "They spoke of eight questions." in sent
    assert "question 3" not in sent
    assert "question 7" in sent
