"""The whole configuration as models; the own keys of a channel or plug-in are the model of its kind."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SerializeAsAny, Strict
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from zerobot.core.access import Autonomy
from zerobot.core.channel_settings import ChannelSettings
from zerobot.core.places import Identity
from zerobot.core.plugin import PluginSettings
from zerobot.core.settings import Duration, FilePath, FromFile, Paths, Secret, Section, Text, Texts, web_address

DEFAULT_AGENT = "default"
"""The name by which channels ask for `[agent]`."""

DEMO = "demo"
"""The provider that exists without a table, and the kind that it is of."""

_MODEL = re.compile(r"[^/\s]+/\S+")


def _model_reference(text: str) -> str:
    if _MODEL.fullmatch(text) is None:
        raise ValueError("is no model; write PROVIDER/MODEL, PROVIDER being the NAME of a table [providers.NAME]")
    return text


def _server(text: str) -> str:
    return web_address(text) if text else text


def _command_prefix(text: str) -> str:
    if not text.strip():
        raise ValueError("is an empty prefix, which every command has; write the command's first words")
    return text


def _operator(text: str) -> str:
    identity = Identity.parse(text) if re.fullmatch(r"[^:\s]+:\S+", text) else None
    if identity is None or identity.id == "*":
        raise ValueError("is no identity; write KIND:ID, the kind of a channel and the person's id there")
    if identity.id.startswith("@"):
        raise ValueError("is a name, which can change hands; write KIND:ID with the id that the platform keeps")
    return text


ModelReference = Annotated[str, AfterValidator(_model_reference)]
"""PROVIDER/MODEL."""


class DaemonSettings(Section):
    """The table `[daemon]`."""

    state_dir: FilePath | None = Field(
        default=None,
        description="Where everything is kept; relative paths begin at this file's directory; "
        "absent: $ZEROBOT_STATE_DIR, else the user's state directory.",
    )
    max_turns: int = Field(
        default=64, ge=1, le=10_000, description="Turns that run at once, 1 or more; what is above waits. Absent: 64."
    )
    shutdown_grace: Duration = Field(
        default=20.0,
        le=3600,
        description="How long running turns get when the daemon stops, at most 1h; what is left goes on at the next "
        "start; 0: they are stopped at once. Absent: 20s.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least severe events that are logged; no message text at info or above."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="How events are written to stderr; auto: console at a terminal, else json."
    )


class AgentSettings(Section):
    """The table `[agent]`, and with single keys that override it, `[agents.NAME]`."""

    name: Text = Field(default="Zero", description="How the agent calls itself.")
    instructions: Annotated[str, FromFile()] = Field(
        default="",
        description="What the model is told about its task; instructions_file names a file instead; "
        "empty or absent: only what zerobot itself says.",
    )
    model: ModelReference = Field(
        default=f"{DEMO}/{DEMO}",
        description="PROVIDER/MODEL: the NAME of a table [providers.NAME] and that provider's name for the model. "
        "Required as soon as there is a provider; absent without one: demo/demo, which needs no account.",
    )
    fallback_models: Annotated[tuple[ModelReference, ...], Strict(strict=False)] = Field(
        default=(), description="Models, as in model, that are asked in turn when it does not answer."
    )
    max_steps: int = Field(
        default=25, ge=1, le=1000, description="Model calls in one turn, 1 or more, never unlimited. Absent: 25."
    )
    turn_timeout: Duration = Field(
        default=900.0,
        gt=0,
        le=7 * 86_400,
        description="How long a turn may work, without its pauses; more than 0, at most 7d, never unlimited. "
        "Absent: 15m.",
    )
    on_message_during_turn: Literal["queue", "steer", "interrupt"] = Field(
        default="queue",
        description="What a message does that comes while a turn runs. queue: it waits its turn; steer: it joins the "
        "running turn before the model is asked again, and one reply answers all (somebody else's waits its turn); "
        "interrupt: the running turn is stopped, and what it has done and said so far is kept.",
    )
    on_message_during_approval: Literal["auto", "queue", "supersede"] = Field(
        default="auto",
        description="What a message does that comes while approvals are open. queue: it waits; supersede: it cancels "
        "them; auto: the daemon decides by the kind of chat.",
    )
    history_messages: int = Field(
        default=200,
        ge=10,
        le=100_000,
        description="Messages of the conversation that the model sees, 10 or more; at the bound the window moves to "
        "70 %. Absent: 200.",
    )
    debounce: Duration = Field(
        default=0.0,
        le=60,
        description="How long a message waits for more from the same person, so that a burst is answered as one; at "
        "most 60s; 0 or absent: it does not wait (but an album always does, for its other pictures).",
    )
    tools: Texts = Field(
        default=("*",), description='Names of the tools that the model is offered; "*": all of them; []: none.'
    )


class ProviderTable(Section):
    """A table `[providers.NAME]`."""

    kind: Text = Field(default="", description="The protocol; absent: the name of the table, if it is a kind.")
    api_key: Secret | None = Field(
        default=None, description="The key, best as ${NAME}; api_key_file names a file instead. Required by most kinds."
    )
    base_url: Annotated[str, AfterValidator(_server)] = Field(
        default="",
        description="A compatible server, as the vendors' SDKs take it: for the openai kinds it ends in /v1, for "
        "anthropic it is the bare host. Empty or absent: the vendor's own.",
    )
    idle_timeout: Duration = Field(
        default=60.0,
        gt=0,
        le=3600,
        description="How long a stream may be silent before it is given up; more than 0, at most 1h. Absent: 60s.",
    )
    connect_timeout: Duration = Field(
        default=10.0, gt=0, le=600, description="How long connecting may take; more than 0, at most 10m. Absent: 10s."
    )
    max_retries: int = Field(
        default=3, ge=0, le=20, description="Tries after the first that failed; 0: one try only. Absent: 3."
    )
    retry_cap: Duration = Field(
        default=45.0,
        le=3600,
        description="How long all waits between the tries of a step may be together, at most 1h; 0: no wait, so a try "
        "that would have to wait is not made. Absent: 45s.",
    )
    text_tools: bool = Field(
        default=False,
        description="For small local models that cannot call tools in the protocol's way: they are told of them in the "
        "system prompt, and call them in fenced blocks. Absent: false.",
    )

    @property
    def key(self) -> str:
        """The API key in clear; empty when there is none."""
        return self.api_key.get_secret_value() if self.api_key else ""


_TokenPrice = Annotated[float | None, Field(ge=0, le=1_000_000)]


class ModelTable(Section):
    """A table `[models."PROVIDER/MODEL"]`: what is known of a model, where zerobot knows nothing or other numbers."""

    context_window: int | None = Field(
        default=None,
        ge=1000,
        le=100_000_000,
        description="Tokens that the model reads and writes together. Absent: as in zerobot's catalogue, if known.",
    )
    max_output: int | None = Field(
        default=None,
        ge=1,
        le=100_000_000,
        description="Tokens that one answer can have. Absent: as in zerobot's catalogue, if known.",
    )
    vision: bool | None = Field(
        default=None,
        description="Whether the model is shown the pictures that people attach; false: it reads their names and "
        "paths. Absent: as in zerobot's catalogue; a model that is not in it is taken not to see.",
    )
    input_price: _TokenPrice = Field(
        default=None,
        description="USD for a million tokens of input; 0: free. Absent: as in zerobot's catalogue, where the "
        "provider is the vendor itself. A model without input and output price is unpriced.",
    )
    output_price: _TokenPrice = Field(
        default=None, description="USD for a million tokens of output; 0: free. Absent: as for input_price."
    )
    cache_read_price: _TokenPrice = Field(
        default=None,
        description="USD for a million tokens of input that the provider had cached. Absent: as in the catalogue, "
        "else input_price.",
    )
    cache_write_price: _TokenPrice = Field(
        default=None,
        description="USD for a million tokens of input that are written to the cache. Absent: as in the catalogue, "
        "else input_price.",
    )


class OperatorSettings(Section):
    """The table `[operators]`."""

    users: Annotated[tuple[Annotated[str, AfterValidator(_operator)], ...], Strict(strict=False)] = Field(
        default=(),
        description="Who decides approvals, as KIND:ID with the platform's immutable id, not a name. Empty or absent: "
        "nobody, and supervised tools are refused (but at the terminal).",
    )
    notify: Literal["auto", "here", "direct"] = Field(
        default="auto",
        description="Where an approval is asked. here: in the chat; direct: in direct messages to the operators; auto: "
        "in the chat when the asker is an operator or one wrote there in the last 24 h, else direct.",
    )
    self_approval: Literal["always", "direct", "never"] = Field(
        default="always",
        description="Whether an operator may decide what they asked for themselves: always, only in their direct chat, "
        "never.",
    )

    @property
    def identities(self) -> tuple[Identity, ...]:
        """The operators, in the order of the file."""
        return tuple(Identity.parse(user) for user in self.users)


class SecuritySettings(Section):
    """The table `[security]`."""

    autonomy: Annotated[Autonomy, Strict(strict=False)] = Field(
        default=Autonomy.SUPERVISED,
        description="read_only: nothing is changed or sent; supervised: what is risky asks an operator first; "
        "full: nothing asks, within the other bounds.",
    )
    workspace: FilePath | None = Field(
        default=None,
        description="Where the tools work; relative paths begin in the state directory; absent: workspace (for a "
        "config-less zerobot chat, the current directory).",
    )
    allowed_paths: Paths = Field(
        default=(), description="Absolute directories or files that tools may touch beside the workspace; absent: none."
    )
    forbidden_paths: Paths = Field(
        default=(), description="Absolute directories or files that no tool may touch; absent: only the built-in ones."
    )
    allowed_commands: Annotated[tuple[Annotated[str, AfterValidator(_command_prefix)], ...], Strict(strict=False)] = (
        Field(default=(), description="Prefixes of shell commands that need no approval; absent: none.")
    )
    auto_approve: Texts = Field(default=(), description="Names of tools that need no approval; absent: none.")
    always_ask: Texts = Field(
        default=(), description="Names of tools that ask every time, whatever else allows them; absent: none."
    )
    denied_tools: Texts = Field(default=(), description="Names of tools that never run; absent: none.")
    approval_timeout: Duration = Field(
        default=3600.0,
        gt=0,
        le=30 * 86_400,
        description="How long an approval may wait before it expires; more than 0, at most 30d, never forever. "
        "Absent: 1h.",
    )
    after_outside_content: Literal["ask", "ignore"] = Field(
        default="ask",
        description="Whether calls that send or fetch ask once the turn has read what somebody else wrote, over "
        "grants too; ignore: the other rules alone decide.",
    )
    show_receipts: bool = Field(
        default=False,
        description="Whether the receipts of a turn's tool calls stand below its reply; `zerobot receipt` checks one.",
    )
    sandbox: Literal["auto", "bubblewrap", "off"] = Field(
        default="auto",
        description="What holds commands. auto: the best that works on this machine; bubblewrap: that one, and the "
        "daemon does not start without it; off: nothing does, and you accept that.",
    )


_Limit = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class BudgetSettings(Section):
    """The table `[budget]`. While a limit is set, a model is asked only if its price is known and what is left pays."""

    max_cost_per_day: _Limit = Field(
        default=0.0,
        description="USD that all model calls of a day may cost together; a day begins at 00:00 UTC. 0 or absent: no "
        "limit.",
    )
    max_cost_per_user_per_day: _Limit = Field(
        default=0.0, description="USD that one person's model calls of a day may cost. 0 or absent: no limit."
    )
    max_cost_per_turn: _Limit = Field(
        default=0.0, description="USD that the model calls for one request may cost. 0 or absent: no limit."
    )


class MemorySettings(Section):
    """The table `[memory]`."""

    enabled: bool = Field(
        default=True,
        description="Whether what people ask to be remembered is kept beyond a conversation and recalled when it fits. "
        "false: nothing is recalled, and the tools remember, recall and forget do not exist; what is stored stays.",
    )


class Settings(BaseSettings):
    """Everything that can be configured.

    Its only source is what the loader hands in: it has put file, variables and environment together by then, and
    knows of every value where it came from, so that a fault names its line. Nothing is read behind its back.
    """

    model_config = SettingsConfigDict(extra="forbid", frozen=True, strict=True)

    daemon: DaemonSettings = Field(default_factory=DaemonSettings, description="The process.")
    agent: AgentSettings = Field(default_factory=AgentSettings, description="The default agent.")
    agents: dict[str, AgentSettings] = Field(
        default_factory=dict, description="Further agents: a table [agents.NAME] each, with the keys that differ."
    )
    providers: dict[str, ProviderTable] = Field(
        default_factory=dict, description="Model APIs: a table [providers.NAME] each."
    )
    models: dict[str, ModelTable] = Field(
        default_factory=dict,
        description='What is known of models: a table [models."PROVIDER/MODEL"] each, over zerobot\'s own catalogue.',
    )
    channels: dict[str, SerializeAsAny[ChannelSettings]] = Field(
        default_factory=dict, description="Connections to platforms: a table [channels.NAME] each."
    )
    operators: OperatorSettings = Field(default_factory=OperatorSettings, description="Who decides approvals.")
    security: SecuritySettings = Field(default_factory=SecuritySettings, description="What tools may do.")
    budget: BudgetSettings = Field(default_factory=BudgetSettings, description="What model calls may cost.")
    memory: MemorySettings = Field(
        default_factory=MemorySettings, description="What is remembered beyond a conversation."
    )
    plugins: dict[str, SerializeAsAny[PluginSettings]] = Field(
        default_factory=dict,
        description="Packages that add tools, hooks and guards: a table [plugins.NAME] each; without one an installed "
        "package does nothing.",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 -- the signature is pydantic-settings'
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from the loader alone."""
        return (init_settings,)

    def agent_named(self, name: str) -> AgentSettings:
        """The agent with this name: `[agent]`, with the keys that `[agents.NAME]` overrides.

        Raises:
            KeyError: There is no such agent.
        """
        if name == DEFAULT_AGENT:
            return self.agent
        table = self.agents[name]
        return self.agent.model_copy(update={key: getattr(table, key) for key in table.model_fields_set})

    def agent_for(self, channel: str) -> AgentSettings:
        """The agent that answers on a channel; on one without a table (the terminal), the default agent."""
        table = self.channels.get(channel)
        return self.agent if table is None else self.agent_named(table.agent)
