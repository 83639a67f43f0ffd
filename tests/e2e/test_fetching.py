"""The Web through the whole daemon: what is asked, what is blocked, what a model reads."""

from tests.e2e.stage import Stage
from tests.platforms.model_script import calls, says
from tests.tools.loopback import answers, served


async def test_a_fetch_is_asked_for_with_its_whole_url(stage: Stage) -> None:
    """The operator sees every character; what comes of it, here that there is no such name, reaches the model."""
    stage.configure("channels.telegram", require_mention=False)
    url = "https://xn--nowhere-9za.invalid/page?to=%C3%A4#part"
    async with stage.daemon():
        stage.model.answers(calls("fetch_url", id="c1", url=url))
        stage.olga.says("read that for me", chat=stage.team)
        prompt = await stage.prompt(stage.team)
        assert url in prompt.text
        assert "its risk is medium" in prompt.text
        stage.model.answers(says("There is no such page."))
        await stage.press(stage.olga, prompt, "Approve")
        await stage.team.reply("There is no such page.")
        result = stage.model.last_request.result_of("c1")
    assert result.code == "ERROR"
    assert "cannot be connected to" in result.text


async def test_no_policy_opens_this_machine_to_a_model(stage: Stage) -> None:
    """With full autonomy too: no private address, and no secret in a URL; the model reads why, nobody is asked."""
    stage.configure("security", autonomy="full", sandbox="off")
    token = stage.tables["channels.telegram"]["bot_token"]
    async with served(answers(b"inside")) as server, stage.daemon() as daemon:
        urls = [
            f"http://127.0.0.1:{server.port}/",
            f"http://[::ffff:127.0.0.1]:{server.port}/",
            f"http://2130706433:{server.port}/",
            f"http://localhost:{server.port}/",
            stage.model.openai_url,
            f"https://example.invalid/?k={token}",
        ]
        for number, url in enumerate(urls):
            stage.model.answers(calls("fetch_url", id=f"c{number}", url=url))
        stage.model.answers(says("Done."))
        await stage.says(stage.olga, "look inside")
        results = [stage.model.last_request.result_of(f"c{number}") for number in range(len(urls))]
        assert daemon.named("approval.requested") == []
    assert server.requests == []
    assert [result.code for result in results] == ["BLOCKED"] * len(urls)
    assert "this very machine" in results[0].text
    assert "own secrets" in results[-1].text
