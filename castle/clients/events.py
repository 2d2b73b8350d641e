"""The events of each host that Castle hooks into; where this is known from stands in ``castle.clients.docs``.

Where the two hosts differ:

- A host that is left waiting shows it, so every event has a time limit far above what a hook takes. Claude
  Code gives all hooks of SessionEnd together 1.5 s unless the user's settings name more; limits in a plugin's
  file do not raise that. Codex gives SessionEnd 1 s and allows 3 s at the most, with a warning above.
- Claude Code cancels background hooks when it ends, so only events that lose nothing by it run that way.
  Codex before 0.148 leaves out hooks that ask for the background, so none does.
- Codex has SessionEnd since 0.145; earlier versions pass it over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MATCHES_ALL = ""


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event: the host's name for it, ours, and how the host is to run the hook.

    ``timeout`` is in seconds. ``background`` means that the host does not wait for the hook. Without a
    ``matcher`` the host calls the hook for everything that the event is about.
    """

    event: str
    hook: str
    timeout: int
    background: bool = False
    matcher: str = MATCHES_ALL

    def group(self, command: str) -> dict[str, object]:
        """Return what stands in the host's list for this event."""
        handler: dict[str, object] = {"type": "command", "command": command, "timeout": self.timeout}
        if self.background:
            handler["async"] = True
        matcher = {"matcher": self.matcher} if self.matcher else {}
        return {**matcher, "hooks": [handler]}


EVENTS: Mapping[str, tuple[HookEvent, ...]] = {
    "claude-code": (
        HookEvent("SessionStart", "session-start", 5),
        HookEvent("UserPromptSubmit", "user-prompt-submit", 5),
        HookEvent("PostToolUse", "post-tool-use", 5, background=True),
        HookEvent("SubagentStop", "subagent-stop", 5, background=True),
        HookEvent("Stop", "stop", 5),
        HookEvent("PreCompact", "precompact", 5),
        HookEvent("SessionEnd", "session-end", 5),
    ),
    "codex": (
        HookEvent("SessionStart", "session-start", 5),
        HookEvent("UserPromptSubmit", "user-prompt-submit", 5),
        HookEvent("PostToolUse", "post-tool-use", 5),
        HookEvent("SubagentStop", "subagent-stop", 5),
        HookEvent("Stop", "stop", 5),
        HookEvent("PreCompact", "precompact", 5),
        HookEvent("SessionEnd", "session-end", 3),
    ),
}
"""The events of each host that has hooks, in the order in which a session comes by them."""


def command(program: str, event: HookEvent, host: str, palace: str = "") -> str:
    """Return the line that runs a hook; ``program`` and ``palace`` are quoted already."""
    named = f" --palace {palace}" if palace else ""
    return f"{program} --hook {event.hook} --harness {host}{named}"


def hooks_file(host: str, program: str = "castle-hook") -> dict[str, object]:
    """Return the whole content of a file of hooks, as a plugin brings it along."""
    return {"hooks": {event.event: [event.group(command(program, event, host))] for event in EVENTS[host]}}
