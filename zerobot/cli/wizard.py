"""Asks for what a configuration needs, checks it as the daemon would, and writes it, private, in one piece."""

import os
import secrets
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import typer

from zerobot.cli.output import say
from zerobot.config.editor import write_value
from zerobot.config.files import ConfigFile
from zerobot.config.kinds import installed_kinds, library_advice
from zerobot.config.loader import load_file
from zerobot.core.channel import ChannelKind, Question
from zerobot.core.errors import ConfigError, ZerobotError
from zerobot.core.places import Identity
from zerobot.core.provider_kind import ProviderKind

PROVIDER = "main"
"""The name of the provider's table."""
PRIVATE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What was given as options; what is empty is asked for."""

    channels: list[str] | None
    """Kinds; None: not given."""
    values: tuple[str, ...]
    """`CHANNEL.KEY=VALUE`."""
    provider: str
    api_key: str
    base_url: str
    model: str
    operators: tuple[str, ...]


class Wizard:
    """Writes one configuration.

    Args:
        answers: What is known already.
        ask: Whether the rest may be asked for.
        force: Whether a file that is there is replaced.
    """

    def __init__(self, answers: Answers, *, ask: bool, force: bool) -> None:
        self._answers = answers
        self._ask = ask
        self._force = force
        self._kinds = installed_kinds()
        self._values = dict(_split(value) for value in answers.values)

    def run(self, path: Path) -> None:
        """Ask, check, write, and say what to do next.

        Raises:
            ConfigError: What was answered cannot be used; nothing was written.
            ZerobotError: The file is there and is to stay, or cannot be written.
        """
        path = path.expanduser().absolute()
        self._may_write(path)
        text = "\n".join([*self._agent(), *self._channels(), *self._operators()]) + "\n"
        load_file(ConfigFile(path=path, text=text, mode=PRIVATE), os.environ, self._kinds)
        _write(path, text)
        say(f"\nwrote {path}; it may hold secrets and is readable by you alone")
        flag = "" if path == Path("zerobot.toml").absolute() else f" --config {path}"
        say(f"next: zerobot{flag} doctor, then: zerobot{flag} run")

    def _may_write(self, path: Path) -> None:
        if not path.exists() or self._force:
            return
        if not (self._ask and typer.confirm(f"{path} is there already. Replace it?", default=False)):
            raise ZerobotError(f"{path} is there already and was left as it is; --force replaces it")

    def _agent(self) -> list[str]:
        names = sorted(self._kinds.providers)
        name = self._choose("Which kind of model API", self._answers.provider, names, "demo")
        kind = self._provider(name)
        if not kind.needs_key and not self._answers.base_url:
            return ["[agent]", f"model = {write_value(f'{name}/{name}')}"]
        key = self._answers.api_key or self._question(
            Question("api_key", "API key", secret=True, help="The key itself, or ${NAME} for an environment variable.")
        )
        model = self._answers.model or self._question(Question("model", "Model", help="The provider's name for it."))
        url = self._answers.base_url
        if not url and self._ask:
            url = typer.prompt("Where the API is", default=kind.default_base_url)
        lines = ["[agent]", f"model = {write_value(f'{PROVIDER}/{model}')}", "", f"[providers.{PROVIDER}]"]
        lines += [f"kind = {write_value(name)}", f"api_key = {write_value(key)}"]
        return lines + ([f"base_url = {write_value(url)}"] if url and url != kind.default_base_url else [])

    def _provider(self, name: str) -> ProviderKind:
        load = self._kinds.providers.get(name)
        if load is None:
            raise ConfigError([f"--provider {name}: there is no such kind; known: {', '.join(self._kinds.providers)}"])
        return load()

    def _channels(self) -> list[str]:
        known = {name: kind for name, load in self._kinds.channels.items() if (kind := load()).questions}
        chosen = self._answers.channels
        if chosen is None:
            chosen = [name for name in known if self._ask and typer.confirm(f"Connect {known[name].title}?")]
        lines: list[str] = []
        for name in chosen:
            if name not in known:
                raise ConfigError([f"--channel {name}: there is no such kind; known: {', '.join(known)}"])
            kind = known[name]
            lines += ["", f"[channels.{name}]", *self._channel(name, kind)]
        return lines

    def _channel(self, name: str, kind: ChannelKind) -> list[str]:
        if advice := library_advice(kind):
            say(f"note: {advice}", err=True)
        lines = []
        for question in kind.questions:
            value = self._values.get(f"{name}.{question.key}") or self._question(question)
            lines.append(f"{question.key} = {write_value(value)}")
        return lines

    def _operators(self) -> list[str]:
        users = list(self._answers.operators)
        if not users and self._ask:
            say("\nOperators decide about risky tool calls. An id is PLATFORM:ID; /whoami in a chat shows yours.")
            given = typer.prompt("Operators, separated by blanks (Enter: none for now)", default="", show_default=False)
            users = given.split()
        for user in users:
            try:
                Identity.parse(user)
            except ValueError as error:
                raise ConfigError([f"operators.users: {error}"]) from None
        return ["", "[operators]", f"users = {write_value(users)}"] if users else []

    def _choose(self, prompt: str, given: str, names: list[str], default: str) -> str:
        if given or not self._ask:
            return given or default
        return str(typer.prompt(f"{prompt} ({', '.join(names)})", default=default))

    def _question(self, question: Question) -> str:
        if not self._ask:
            raise ConfigError([f"{question.key} is missing; {question.help or 'give it as an option'}"])
        if question.help:
            say(f"\n{question.help}")
        return str(typer.prompt(question.prompt, hide_input=question.secret and sys.stdin.isatty())).strip()


def _split(value: str) -> tuple[str, str]:
    key, equals, text = value.partition("=")
    if not (equals and "." in key):
        raise ConfigError([f"--set {key}: write CHANNEL.KEY=VALUE"])
    return key.strip(), text


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise ZerobotError(f"cannot write {path}: {error.strerror}") from error
