"""What guards the house: who decides, who comes in, who asks about strangers, and the emergency stop."""

from dataclasses import dataclass

from zerobot.core.approvals import PressReply
from zerobot.core.envelope import ButtonPress
from zerobot.daemon.desk import ApprovalDesk
from zerobot.daemon.door import Door
from zerobot.daemon.doorbell import Doorbell
from zerobot.daemon.emergency import EmergencyStop


@dataclass(frozen=True, slots=True, kw_only=True)
class Wards:
    """All together, for whoever carries out what operators want."""

    desk: ApprovalDesk
    door: Door
    doorbell: Doorbell
    emergency: EmergencyStop

    async def press(self, press: ButtonPress) -> PressReply:
        """Take a press to where it is decided: about a stranger, or about a tool call."""
        return await self._asked_by(press).press(press)

    async def may_press(self, press: ButtonPress) -> PressReply | None:
        """What a press would be refused with, nothing being decided; None: it would count now."""
        return await self._asked_by(press).may_press(press)

    def _asked_by(self, press: ButtonPress) -> Doorbell | ApprovalDesk:
        return self.doorbell if self.doorbell.is_meant(press) else self.desk
