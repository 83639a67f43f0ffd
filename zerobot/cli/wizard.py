"""Asks for what a configuration needs, checks it as the daemon would, and writes it, private, in one piece."""

import os
import re
import secrets
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from zerobot.cli.output import say
from zerobot.config.editor import write_value
from zerobot.config.files import ConfigFile
from zerobot.config.keys import KeyPath, dotted
from zerobot.config.kinds import installed_kinds, library_advice
from zerobot.config.loader import examine, fault_lines
from zerobot.config.tables import is_list
from zerobot.config.values import value_for
from zerobot.core.channel import Question
from zerobot.core.errors import ConfigError, ZerobotError
from zerobot.core.places import Identity

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
        self._draft: dict[tuple[str, ...], dict[str, object]] = {}
        """Tables by their path, in the order in which they are written."""
        self._path = Path()

    def run(self, path: Path) -> None:
        """Ask, check, write, and say what to do next.

        Raises:
            ConfigError: An option cannot be used, and nothing was written; or the answers do not fit together: they
                were written, so that none is lost.
            ZerobotError: The file is there and is to stay, or cannot be written.
        """
        self._path = path = path.expanduser().absolute()
        self._may_write(path)
        self._agent()
        self._channels()
        self._operators()
        examined = examine(self._file(), os.environ, self._kinds)
        unset = self._unset()
        faults = [fault for fault in examined.faults if fault.path not in unset]
        if faults and not self._ask:
            raise ConfigError(fault_lines(self._file(), replace(examined, faults=faults)))
        _write(path, self._text())
        if self._ask:
            say("")
        say(f"wrote {path}; it may hold secrets and is readable by you alone")
        if faults:
            raise ConfigError(fault_lines(self._file(), replace(examined, faults=faults)))
        for key, name in unset.items():
            say(f"note: {dotted(key)} names ${{{name}}}, which is not set here: set it before you start", err=True)
        flag = "" if path == Path("zerobot.toml").absolute() else f" --config {path}"
        say(f"next: zerobot{flag} doctor, then: zerobot{flag} run")

    def _may_write(self, path: Path) -> None:
        if not path.exists() or self._force:
            return
        if not (self._ask and typer.confirm(f"{path} is there already. Replace it?", default=False)):
            raise ZerobotError(f"{path} is there already and was left as it is; --force replaces it")

    # -- what is asked ------------------------------------------------------------------------------------------------

    def _agent(self) -> None:
        answers, names = self._answers, sorted(self._kinds.providers)
        prompt = f"Which kind of model API ({', '.join(names)})"
        name = self._choose(prompt, "--provider", answers.provider, names, "demo")
        kind = self._kinds.providers[name]()
        agent, home = ("agent",), ("providers", PROVIDER)
        if not kind.needs_key and not answers.base_url:
            self._draft[agent] = {"model": f"{name}/{name}"}
            return
        self._draft |= {agent: {}, home: {"kind": name}}
        if answers.base_url or self._ask:
            url = Question("base_url", "Where the API is")
            self._fill((*home, "base_url"), url, "--base-url", answers.base_url, default=kind.default_base_url)
            if self._draft[home]["base_url"] == kind.default_base_url:
                del self._draft[home]["base_url"]
        # Another server than the vendor's may well want no key.
        elsewhere = "base_url" in self._draft[home]
        how = "The key itself, or ${NAME} for an environment variable" + (
            "; Enter: it wants none." if elsewhere else "."
        )
        key = Question("api_key", "API key", secret=True, help=how)
        if answers.api_key or self._ask or not elsewhere:
            self._fill((*home, "api_key"), key, "--api-key", answers.api_key, optional=elsewhere)
        model = Question("model", "Model", help="The provider's name for it.")
        self._fill((*agent, "model"), model, "--model", answers.model, prefix=f"{PROVIDER}/")

    def _channels(self) -> None:
        known = {name: kind for name, load in self._kinds.channels.items() if (kind := load()).questions}
        chosen = self._answers.channels
        if chosen is None:
            chosen = [name for name in known if self._ask and typer.confirm(f"Connect {known[name].title}?")]
        for name in chosen:
            if name not in known:
                raise ConfigError([f"--channel {name}: there is no such kind; known: {', '.join(known)}"])
        asked = {f"{name}.{question.key}" for name in chosen for question in known[name].questions}
        for key in self._values:
            if key not in asked:
                raise ConfigError([f"--set {key}: is not asked for; known: {', '.join(sorted(asked)) or 'no channel'}"])
        for name in chosen:
            if advice := library_advice(known[name]):
                say(f"note: {advice}", err=True)
            self._draft["channels", name] = {}
            for question in known[name].questions:
                key = f"{name}.{question.key}"
                given = self._values.get(key, "")
                self._fill(("channels", name, question.key), question, f"--set {key}", given)

    def _operators(self) -> None:
        given = list(self._answers.operators)
        for user in given:
            if why := _no_identity(user):
                raise ConfigError([f"--operator {user}: {why}"])
        if not given and self._ask:
            say("\nOperators decide about risky tool calls. An id is PLATFORM:ID; /whoami in a chat shows yours.")
            question = "Operators, separated by blanks (Enter: none for now)"
            while True:
                given = typer.prompt(question, default="", show_default=False).replace(",", " ").split()
                wrong = [f"{user}: {why}" for user in given if (why := _no_identity(user))]
                if not wrong:
                    break
                say("\n".join(wrong), err=True)
        if given:
            self._draft["operators",] = {"users": given}

    def _choose(self, prompt: str, option: str, given: str, names: list[str], default: str) -> str:
        if given or not self._ask:
            name = given or default
            if name not in names:
                raise ConfigError([f"{option} {name}: there is no such kind; known: {', '.join(names)}"])
            return name
        while (name := str(typer.prompt(prompt, default=default)).strip()) not in names:
            say(f"there is no kind {name!r}; known: {', '.join(names)}", err=True)
        return name

    def _fill(
        self,
        path: tuple[str, ...],
        question: Question,
        option: str,
        given: str,
        *,
        prefix: str = "",
        default: str = "",
        optional: bool = False,
    ) -> None:
        """Put one value into the draft: the given one, or what is answered, asked again until it can be used.

        An optional one may be answered with nothing, and is left out then.

        Raises:
            ConfigError: The given one cannot be used, or there is none and nothing may be asked.
        """
        table = self._draft[path[:-1]]
        if given or not self._ask:
            if not given:
                raise ConfigError([f"{option} is missing; {question.help or question.prompt}"])
            table[path[-1]] = self._value(path, prefix + given)
            if why := self._complaint(path):
                raise ConfigError([f"{option}: {why}"])
            return
        if question.help:
            say(f"\n{question.help}")
        hidden = question.secret and sys.stdin.isatty()
        while True:
            offered = default or ("" if optional else None)
            answer = str(
                typer.prompt(question.prompt, default=offered, hide_input=hidden, show_default=bool(default))
            ).strip()
            if optional and not answer:
                table.pop(path[-1], None)
                return
            table[path[-1]] = self._value(path, prefix + answer)
            why = self._complaint(path) if answer else "is empty"
            if not why:
                return
            say(f"{question.prompt}: {why}", err=True)

    # -- the draft ----------------------------------------------------------------------------------------------------

    def _value(self, path: tuple[str, ...], answer: str) -> object:
        """An answer as it is written into the file: as it is, or as a list where one is wanted."""
        tables = examine(self._file(), os.environ, self._kinds).tables
        field = tables.field(path)
        return value_for(tables, path, answer) if field is not None and is_list(field) else answer

    def _complaint(self, path: tuple[str, ...]) -> str:
        """What is wrong with the value at a path, as the daemon would see it; empty: nothing."""
        if path in self._unset():
            return ""
        faults = examine(self._file(), os.environ, self._kinds).faults
        return "; ".join(fault.text for fault in faults if fault.path[: len(path)] == path)

    def _unset(self) -> dict[KeyPath, str]:
        """Where the draft names an environment variable that is not set, and which."""
        return {
            (*home, key): match[1]
            for home, table in self._draft.items()
            for key, value in table.items()
            if isinstance(value, str)
            and (match := re.search(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)\}", value))
            and match[1] not in os.environ
        }

    def _file(self) -> ConfigFile:
        return ConfigFile(path=self._path, text=self._text(), mode=PRIVATE)

    def _text(self) -> str:
        tables = [
            "\n".join([f"[{dotted(home)}]", *(f"{key} = {write_value(value)}" for key, value in table.items())])
            for home, table in self._draft.items()
        ]
        return "\n\n".join(tables) + "\n"


def _no_identity(text: str) -> str:
    """Why a text names nobody; empty when it does."""
    try:
        Identity.parse(text)
    except ValueError as error:
        return str(error)
    return ""


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
