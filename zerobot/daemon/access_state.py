"""The access policy in force: what is configured, and the freeze switch that operators can throw at any time."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from zerobot.config.loader import LoadedConfig
from zerobot.core.access import Grant
from zerobot.core.channel import ChannelState
from zerobot.core.clock import Clock
from zerobot.core.ids import ConversationId
from zerobot.security.bounds import Bounds
from zerobot.security.own_secrets import OwnSecrets
from zerobot.security.policy import AccessPolicy, bounds_of, command_prefixes
from zerobot.security.sandbox import SandboxState
from zerobot.store.grants import Grants

FROZEN = "frozen"
"""The key of the freeze switch in the daemon's own state."""


def configured_bounds(config: LoadedConfig) -> Bounds:
    """Where tools may go, from the configuration.

    No tool may touch the state directory (but for the workspace in it), the configuration and the files of secrets.
    """
    security = config.settings.security
    return bounds_of(
        workspace=config.workspace,
        allowed_paths=[str(path) for path in security.allowed_paths],
        forbidden_paths=[str(path) for path in security.forbidden_paths],
        own_paths=[config.state_dir, *([config.path] if config.path else []), *config.secret_files],
    )


def configured_policy(config: LoadedConfig, bounds: Bounds, sandbox: SandboxState) -> AccessPolicy:
    """Make the policy from the configuration.

    Args:
        config: What was configured.
        bounds: Where tools may go.
        sandbox: What holds commands.
    """
    security = config.settings.security
    return AccessPolicy(
        bounds=bounds,
        autonomy=security.autonomy,
        allowed_commands=command_prefixes(security.allowed_commands),
        auto_approve=security.auto_approve,
        always_ask=security.always_ask,
        denied_tools=security.denied_tools,
        ask_after_outside_content=security.after_outside_content == "ask",
        sandbox=sandbox,
    )


class DaemonAccess:
    """Gives turns the policy and the grants as they are at this moment."""

    def __init__(
        self, policy: AccessPolicy, grants: Grants, state: ChannelState, secrets: OwnSecrets, clock: Clock
    ) -> None:
        self._policy = policy
        self._secrets = secrets
        self._frozen = asyncio.Event()
        self._grants = grants
        self._state = state
        self._clock = clock

    async def load(self) -> None:
        """Read the freeze switch; it holds over restarts."""
        self._switch(frozen=await self._state.get(FROZEN) == "yes")

    def policy(self) -> AccessPolicy:
        """The policy in force."""
        return self._policy

    async def grants(self, conversation: ConversationId) -> Sequence[Grant]:
        """The grants of a conversation that have not ended."""
        return await self._grants.active(conversation, self._clock.now())

    def own_secrets(self, arguments: Mapping[str, object]) -> tuple[str, ...]:
        """The keys of the configured secrets that stand in the arguments of a call."""
        return self._secrets.named_in(arguments)

    async def until_frozen(self) -> None:
        """Wait until all tools are stopped; returns at once while they are."""
        await self._frozen.wait()

    async def freeze(self, *, frozen: bool) -> None:
        """Throw the switch: while it is on, no tool runs, and those that run are ended.

        Raises:
            StorageError: It is not on record. A freeze holds nevertheless, until the next start; an unfreeze does not.
        """
        if frozen:
            self._switch(frozen=True)
        await self._state.set(FROZEN, "yes" if frozen else "no")
        self._switch(frozen=frozen)

    def _switch(self, *, frozen: bool) -> None:
        self._policy = replace(self._policy, frozen=frozen)
        if frozen:
            self._frozen.set()
        else:
            self._frozen.clear()
