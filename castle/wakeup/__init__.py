"""What an agent is told unasked: at the beginning of a session, and beside a prompt."""

from castle.wakeup.layers import WakeUp, wake_up
from castle.wakeup.prerendered import prerender

__all__ = ["WakeUp", "prerender", "wake_up"]
