"""``python -m plugins.update`` brings the plugins up to date with the package.

It writes Castle's version into every manifest, the hooks of each host from ``castle.clients.events``, and the
skill of Codex from that of Claude Code. The tests compare what it would write with what is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from castle import __version__
from castle.clients.events import hooks_file

ROOT = Path(__file__).parents[1]
MANIFESTS = {
    "claude-code": ROOT / "plugins/claude-code/.claude-plugin/plugin.json",
    "codex": ROOT / "plugins/codex/.codex-plugin/plugin.json",
}
SKILL = Path("skills/castle/SKILL.md")


def files() -> Iterator[tuple[Path, str]]:
    """Yield each file that follows from the package, with the text it should have."""
    for host, manifest in MANIFESTS.items():
        yield manifest, written(json.loads(manifest.read_text(encoding="utf-8")) | {"version": __version__})
        yield ROOT / "plugins" / host / "hooks/hooks.json", written(hooks_file(host))
    skill = (ROOT / "plugins/claude-code" / SKILL).read_text(encoding="utf-8")
    yield ROOT / "plugins/codex" / SKILL, without_tools(skill)


def written(value: object) -> str:
    """Return JSON as it stands in the repository."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def without_tools(skill: str) -> str:
    """Leave out the line of allowed tools, which only Claude Code knows."""
    return "".join(line for line in skill.splitlines(True) if not line.startswith("allowed-tools:"))


if __name__ == "__main__":
    for path, text in files():
        path.write_text(text, encoding="utf-8")
