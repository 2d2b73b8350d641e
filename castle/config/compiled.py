"""The settings of hooks, compiled into ``hooks.json``: a hook has no time to read YAML.

Only what stands in the user's file counts, and the defaults: a flag or an environment variable of the command
that compiles is none of the hooks' business.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from castle.config.files import present, replace
from castle.config.load import FILE_NAME, load
from castle.config.settings import Settings

HOOKS_FILE = "hooks.json"


def compile_hooks(settings: Settings) -> None:
    """Write ``hooks.json`` in Castle's home, unless it says already what it should.

    The file has mode 0600. Raises ConfigError when the user's file is broken or ``hooks.json`` cannot be
    written.
    """
    home = settings.home
    source = home / FILE_NAME
    if not home.is_dir():
        return
    # Taken before the file is read: what changes meanwhile is then seen to be newer.
    mtime_ns = source.stat().st_mtime_ns if present(source) else 0
    own = load(env={name: os.environ[name] for name in ("HOME",) if name in os.environ}, home=home)
    compiled = {
        "v": 1,
        "palace": str(own.palace_path),
        "wake_up": own.hooks.wake_up,
        "recall": own.hooks.recall,
        "save_interval": own.hooks.save_interval,
        "desktop_toast": own.hooks.desktop_toast,
        "source": str(source),
        "mtime_ns": mtime_ns,
    }
    data = f"{json.dumps(compiled, indent=2)}\n".encode("ascii")
    target = home / HOOKS_FILE
    if _read(target) != data:
        replace(target, data, 0o600)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None
