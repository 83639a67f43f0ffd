"""The demo model: a first run without a network shows the whole loop, and nobody mistakes it for understanding."""

import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from tests.platforms.model_asking import Asked, QuickClock, Settings, ask, assistant, called, opened, question, tool
from zerobot.core.messages import AssistantMessage, ResultCode
from zerobot.core.model import Finish, ModelProvider, TextDelta
from zerobot.providers import demo

TOOLS = [
    tool("read_file", "path"),
    tool("list_files", "path"),
    tool("search_files", "query", "path"),
    tool("write_file", "path", "content"),
    tool("shell", "command"),
    tool("fetch_url", "url"),
    tool("remember", "key", "text"),
    tool("time_now"),
]


@contextlib.asynccontextmanager
async def demo_model() -> AsyncIterator[ModelProvider]:
    """Open the demo on a clock that waits for nothing."""
    async with opened(demo.KIND, Settings(key=""), clock=QuickClock()) as provider:
        yield provider


async def hear(*messages: AssistantMessage | str, with_tools: bool = True) -> Asked:
    """Say something to the demo."""
    async with demo_model() as provider:
        return await ask(provider, question(*messages, tools=TOOLS if with_tools else ()))


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("read README.md", "read_file", {"path": "README.md"}),
        ("Please read the file docs/a.md.", "read_file", {"path": "docs/a.md"}),
        ('Can you show me "notes.txt"?', "read_file", {"path": "notes.txt"}),
        ("fetch https://example.org/a?b.", "fetch_url", {"url": "https://example.org/a?b"}),
        ("Read http://example.org", "fetch_url", {"url": "http://example.org"}),
        ("list", "list_files", {"path": "."}),
        ("list files", "list_files", {"path": "."}),
        ("list the files in docs/", "list_files", {"path": "docs/"}),
        ("search TODO", "search_files", {"query": "TODO"}),
        ("search for two words in src", "search_files", {"query": "two words", "path": "src"}),
        ("run ls -la", "shell", {"command": "ls -la"}),
        ("Run `git status`?", "shell", {"command": "git status"}),
        ('run echo "done."', "shell", {"command": 'echo "done."'}),
        ("run python -c 'print(1)'", "shell", {"command": "python -c 'print(1)'"}),
        (
            "write notes.txt: buy milk\nand bread.",
            "write_file",
            {"path": "notes.txt", "content": "buy milk\nand bread."},
        ),
        (
            "remember that tea is at four o'clock",
            "remember",
            {"key": "tea is at four", "text": "tea is at four o'clock"},
        ),
        ("what time is it?", "time_now", {}),
        ("What is the time", "time_now", {}),
    ],
)
async def test_a_plain_request_is_a_tool_call(text: str, name: str, arguments: dict[str, str]) -> None:
    """What plainly asks for a tool calls it, with what was said and nothing else, and says what is coming."""
    answer = (await hear(text)).answer
    assert [(call.name, json.loads(call.raw_arguments)) for call in answer.calls] == [(name, arguments)]
    assert answer.finish is Finish.TOOL
    assert answer.text


async def test_several_lines_are_several_calls() -> None:
    """Each line a request: the calls come in one step, with ids of their own."""
    answer = (await hear("read a.txt\nrun ls")).answer
    assert [call.name for call in answer.calls] == ["read_file", "shell"]
    assert len({call.provider_id for call in answer.calls}) == 2


@pytest.mark.parametrize("text", ["hello", "help", "who are you?", "Tell me a long story about the sea.", "", "???"])
async def test_it_says_what_it_is(text: str) -> None:
    """Whatever is said, it pretends nothing: it is a demo, and this is how to get a real model."""
    answer = (await hear(text)).answer
    assert answer.calls == ()
    assert "demo model" in answer.text
    assert "zerobot init" in answer.text
    assert "[providers.main]" in answer.text
    assert "run touch" in answer.text


async def test_it_streams_word_by_word() -> None:
    """The text comes in many small pieces with a pause between two, as that of a real model does."""
    clock = QuickClock()
    async with opened(demo.KIND, Settings(key=""), clock=clock) as provider:
        asked = await ask(provider, question("hello"))
    deltas = [event.text for event in asked.events if isinstance(event, TextDelta)]
    assert len(deltas) > 20
    assert len(clock.slept) == len(deltas) - 1
    assert asked.answer.text == "".join(deltas)


async def test_the_same_question_has_the_same_answer() -> None:
    """It is deterministic, ids included."""
    assert (await hear("run ls")).events == (await hear("run ls")).events


async def test_a_tool_that_is_not_there_is_not_called() -> None:
    """It says which one it would need."""
    for text, name in (("remember that tea is at four", "remember"), ("run ls", "shell")):
        answer = (await hear(text, with_tools=False)).answer
        assert answer.calls == ()
        assert f"`{name}`" in answer.text


async def test_arguments_have_the_names_that_the_tool_gives_them() -> None:
    """A tool may call its parameters otherwise."""
    async with demo_model() as provider:
        other = [tool("search_files", "pattern", "path")]
        answer = (await ask(provider, question("search x in y", tools=other))).answer
    assert json.loads(answer.calls[0].raw_arguments) == {"pattern": "x", "path": "y"}


async def test_a_result_is_reported() -> None:
    """What the tool gave is shown, fenced so that it cannot break out."""
    answer = (await hear("read a.md", assistant("", called("read_file", "c1", result="# A\n```\ncode\n```")))).answer
    assert "`read_file`" in answer.text
    assert "````\n# A\n```\ncode\n```\n````" in answer.text
    assert (answer.calls, answer.finish) == ((), Finish.STOP)


async def test_a_long_result_is_cut() -> None:
    """The rest is said to be left out."""
    answer = (await hear("run x", assistant("", called("shell", "c1", result="line\n" * 500)))).answer
    assert 0 < answer.text.count("line") < 50
    assert "left out" in answer.text


@pytest.mark.parametrize("code", [code for code in ResultCode if code is not ResultCode.OK])
async def test_a_call_that_came_to_nothing_is_reported_as_such(code: ResultCode) -> None:
    """It never claims that something worked."""
    call = called("shell", "c1", result="reason: no", code=code)
    text = (await hear("run ls", assistant("", call))).answer.text
    assert "`shell`" in text
    assert "reason: no" in text
    assert "says:" not in text
    if code is ResultCode.DENIED:
        assert "operator said no" in text


async def test_every_call_of_a_step_is_reported() -> None:
    """One that ran and one that was refused."""
    both = (called("shell", "c1", result="a"), called("write_file", "c2", result="no", code=ResultCode.DENIED))
    text = (await hear("x", assistant("", *both))).answer.text
    assert text.index("`shell`") < text.index("`write_file`")


async def test_check_says_that_it_is_the_demo() -> None:
    """`zerobot doctor` does not pass it off as a model."""
    async with demo_model() as provider:
        assert "demo" in await provider.check("demo")
