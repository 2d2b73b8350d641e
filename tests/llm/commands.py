"""A ``claude`` or ``codex`` on PATH that does what a test writes, and notes what it was given."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

_NOTING = """\
import json, os, sys
question = sys.stdin.read()
with open({noted!r}, "w", encoding="utf-8") as file:
    json.dump({{"argv": sys.argv[1:], "stdin": question, "cwd": os.getcwd(), "files": os.listdir("."),
               "env": dict(os.environ)}}, file)
"""


class FakeClaude:
    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, name: str = "claude") -> None:
        self._directory = directory
        self._name = name
        directory.mkdir()
        monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")

    def does(self, code: str, interpreter: str = sys.executable) -> None:
        noting = _NOTING.format(noted=str(self._directory / "noted.json"))
        script = self._directory / self._name
        python = interpreter == sys.executable
        script.write_text(f"#!{interpreter}\n{noting if python else ''}{code}\n", encoding="utf-8")
        script.chmod(0o755)

    def prints(self, value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        self.does(f"sys.stdout.write({text!r})")

    def says(self, text: str) -> None:
        self.prints({"type": "result", "subtype": "success", "is_error": False, "result": text})

    @property
    def noted(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self._directory / "noted.json").read_text(encoding="utf-8"))
        return found
