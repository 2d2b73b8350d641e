"""How a client has to call Castle's programs, which may not stand where the client looks for them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin")


@dataclass(frozen=True, slots=True)
class Program:
    """What a client is told to start, and why it is told a path; "" when the bare name will do."""

    command: str
    why: str = ""


def program(name: str, *, graphical: bool, env: Mapping[str, str], beside: tuple[Path, ...] = ()) -> Program:
    """Return how to call one of Castle's programs.

    By its bare name where the client's PATH will lead to the very one that belongs to this command, else by
    its path. A ``graphical`` client is started from a desktop, whose PATH holds the system's directories.
    """
    own = next((path for path in _candidates(name, beside) if path.is_file()), None)
    on_path = shutil.which(name, path=env.get("PATH", ""))
    if own is None:
        if on_path is not None:
            return Program(name)
        return Program(
            name, f"{name} was found nowhere; install it, or put its path in the place of its name"
        )
    if on_path is None:
        return Program(str(own), f"its directory {own.parent} is not on the PATH")
    directory = Path(on_path).parent
    if not Path(on_path).samefile(own):
        return Program(str(own), f"the {name} on the PATH, {on_path}, is another one")
    if (directory.parent / "pyvenv.cfg").is_file():
        return Program(str(own), f"{directory} is on the PATH only while its virtual environment is active")
    if graphical and str(directory) not in _SYSTEM:
        return Program(str(own), f"a program started from the desktop may not have {directory} on its PATH")
    return Program(name)


def _candidates(name: str, beside: tuple[Path, ...]) -> list[Path]:
    suffix = ".exe" if sys.platform == "win32" else ""
    places = beside or (Path(sys.argv[0]).absolute(), Path(sys.executable).absolute())
    return [place.with_name(name + suffix) for place in places]


def is_program(command: object, name: str) -> bool:
    """Say whether a command line or the path of a program calls one of Castle's."""
    return isinstance(command, str) and bool(
        re.search(rf"(?:^|[\\/\"'\s]){name}(?:\.exe)?(?=$|[\"'\s])", command)
    )


def quoted(text: str, *, windows: bool = os.name == "nt") -> str:
    """Quote a word for the shell that hosts run hooks with."""
    # On Windows it is Git Bash or cmd: double quotes and slashes mean the same to both.
    return subprocess.list2cmdline([text.replace("\\", "/")]) if windows else shlex.quote(text)
