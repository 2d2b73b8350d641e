"""Checks of the ways in: the settings of agents, the hook and the server, each started for real."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from castle.doctor.context import Context
from castle.doctor.line import Result, bad, good, unknown, unused

HOOK_SECONDS = 0.3
"""The longest that a hook may keep a person waiting."""
_ENDS_SECONDS = 10
SERVER_SECONDS = 2.0
"""How long the doctor waits for a server that answers hooks."""
_PLUGIN = "the plugin"
_TRUST = "not trusted in Codex yet"
RECALL_SECONDS = 0.08
"""How long a hook waits for what is recalled."""
_ASKED = 3


def clients(context: Context) -> Result:
    """What agents were connected with is in force there."""
    from castle.clients.connect import installed

    found = [one for one in installed(context.home) if one.mcp or one.hooks or one.note.startswith(_PLUGIN)]
    if not found:
        return unused("no agent on this machine is connected", "castle connect AGENT")
    told, wrong = [], []
    for one in found:
        parts = [*(["server"] if one.mcp else []), *([f"{len(one.hooks)} hooks"] if one.hooks else [])]
        told.append(f"{one.client}: {', '.join(parts) or 'plugin'}")
        if one.note and (not one.note.startswith(_PLUGIN) or "twice" in one.note):
            wrong.append(f"{one.client}: {one.note}")
    gone = [program for program in _hook_programs(context) if _resolved(program) is None]
    if gone:
        return bad(f"hooks call what is not there: {', '.join(gone)}", "castle connect AGENT")
    if wrong:
        trust = all(_TRUST in line for line in wrong)
        help = (
            "type /hooks in Codex and trust them" if trust else "castle connect AGENT, or what the line says"
        )
        return bad("; ".join(wrong), help)
    return good("; ".join(told))


def hook(context: Context) -> Result:
    """The hook that agents call runs, notes an event and is quick; all in a palace that is thrown away."""
    programs = [path for program in _hook_programs(context) if (path := _resolved(program)) is not None] or [
        _own("castle-hook", "castle.hooks")
    ]
    told = []
    for command in programs:
        with tempfile.TemporaryDirectory(prefix="castle-doctor-") as place:
            taken, trouble = _run_hook(command, Path(place))
        name = shlex.join(command)
        if trouble:
            return bad(f"{name}: {trouble}", "pip install -U --force-reinstall cognitive-castle")
        if taken > HOOK_SECONDS:
            return bad(f"{name} took {taken * 1000:.0f} ms", "try again when this machine is idle")
        told.append(f"{Path(command[0]).name} runs, {taken * 1000:.0f} ms")
    return good("; ".join(told))


def _run_hook(command: Sequence[str], home: Path) -> tuple[float, str]:
    """Note a signal with empty fields, which starts nothing else; return seconds and what went wrong."""
    palace = home / "palace"
    palace.mkdir(mode=0o700)
    env = {**os.environ, "CASTLE_HOME": str(home)}
    best = float("inf")
    for _ in range(3):
        started = time.monotonic()
        try:
            done = subprocess.run(
                [*command, "--hook", "post-tool-use", "--harness", "claude-code", "--palace", str(palace)],
                input=b"{}",
                capture_output=True,
                env=env,
                cwd=home,
                timeout=_ENDS_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return 0.0, f"cannot be run ({type(error).__name__})"
        best = min(best, time.monotonic() - started)
        if done.returncode or done.stdout:
            return 0.0, f"exit code {done.returncode}, {len(done.stdout)} bytes on stdout"
        if done.stderr:
            return 0.0, " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
    spooled = sum(file.stat().st_size for file in palace.glob("spool/*.jsonl"))
    return best, "" if spooled else "it noted nothing"


def recall(context: Context) -> Result:
    """A server answers the recall of hooks in the time that they wait for it, where recall is switched on."""
    from castle.local import ask, socket_path

    request = {"v": 1, "prompt": "castle doctor", "cwd": str(context.home), "max_tokens": 1}
    best = None
    for _ in range(_ASKED):
        started = time.monotonic()
        if ask(str(context.root), request, SERVER_SECONDS) is None:
            break
        taken = time.monotonic() - started
        best = taken if best is None else min(best, taken)
    answers = "no server answers" if best is None else f"a server answers after {best * 1000:.0f} ms"
    if not context.settings.hooks.recall:
        return unused(f"hooks.recall is off; {answers}", "castle config set hooks.recall true")
    if best is None:
        place = socket_path(str(context.root))
        return unknown(
            f"hooks.recall is on; {answers} at {place}", "castle serve, or a session with castle-mcp"
        )
    if best > RECALL_SECONDS:
        late = f"hooks.recall is on; {answers}, and a hook waits {RECALL_SECONDS * 1000:.0f} ms"
        return bad(late, "try again when this machine is idle")
    return good(f"hooks.recall is on; {answers}")


def server(context: Context) -> Result:
    """The server of tools starts and shakes hands, without a palace to open."""
    command = _own("castle-mcp", "castle.mcp")
    with tempfile.TemporaryDirectory(prefix="castle-doctor-") as place:
        started = time.monotonic()
        try:
            process = subprocess.Popen(
                [*command, "--palace", str(Path(place) / "none")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=place,
            )
        except OSError as error:
            return bad(f"{shlex.join(command)} cannot be started: {error.strerror}", _reinstall())
        with process:
            try:
                answer = _initialized(process)
                taken = time.monotonic() - started
            finally:
                with suppress(OSError, subprocess.TimeoutExpired):
                    process.communicate(timeout=_ENDS_SECONDS)
                process.kill()
    name = answer.get("name") if isinstance(answer, dict) else None
    if name is None:
        return bad(f"{shlex.join(command)} gave no answer to initialize", _reinstall())
    return good(f"{Path(command[0]).name} answers after {taken * 1000:.0f} ms")


def _initialized(process: subprocess.Popen[bytes]) -> dict[str, object] | None:
    """Send ``initialize``; return what the server says of itself."""
    assert process.stdin is not None and process.stdout is not None
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "castle doctor", "version": "1"},
        },
    }
    try:
        process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        about = answer["result"]["serverInfo"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return about if isinstance(about, dict) else None


def _hook_programs(context: Context) -> list[str]:
    """Return the programs that the hooks of connected agents call, each once."""
    return list(dict.fromkeys(_named(context)))


def _named(context: Context) -> Iterator[str]:
    from castle.clients import hooks
    from castle.clients.files import read
    from castle.clients.merge import opened
    from castle.clients.table import CLIENTS, places
    from castle.errors import CastleError

    where = places(context.home)
    for client in CLIENTS:
        if client.hooks_file is None:
            continue
        with suppress(CastleError, OSError, ValueError):
            file = read(client.hooks_file(where))
            for handler in hooks.handlers(opened(file.text, file.path, relaxed=False)):
                line = handler.value.get("command") if isinstance(handler.value, dict) else None
                words = shlex.split(line) if isinstance(line, str) else []
                if words:
                    yield words[0]


def _resolved(program: str) -> list[str] | None:
    path = shutil.which(program)
    return None if path is None else [path]


def _own(name: str, module: str) -> list[str]:
    """Return how to start a program of this installation."""
    suffix = ".exe" if sys.platform == "win32" else ""
    beside = Path(sys.executable).with_name(name + suffix)
    return [str(beside)] if beside.is_file() else [sys.executable, "-m", module]


def _reinstall() -> str:
    return "pip install -U --force-reinstall cognitive-castle"
