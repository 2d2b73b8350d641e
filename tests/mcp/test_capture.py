from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from castle import Castle, config
from tests.mcp.conftest import Ask
from tests.mine.test_convos import talk


def save(root: Path, count: int, name: str = "late") -> None:
    """Let a hook note a transcript, and file it."""
    path = root.parent / f"{name}.jsonl"
    path.write_text("".join(talk(count)).replace('"s1"', f'"{name}"'), encoding="utf-8")
    note(root, path, name)


def note(root: Path, path: Path, session: str) -> None:
    (root / "spool").mkdir(exist_ok=True)
    event = {"v": 1, "at": 2_000_000_000_000_000, "hook": "stop", "session": session, "transcript": str(path)}
    (root / "spool" / "events.jsonl").write_text(json.dumps(event) + "\n", encoding="utf-8")
    with Castle(root) as castle:
        castle.drain_spool()


def filed(ask: Ask) -> Any:
    answer = ask("castle_memories_filed_away")
    assert not answer.is_error
    return answer.structured_content


def test_what_was_filed_away_is_told_once(root: Path, ask: Ask) -> None:
    assert filed(ask) == {"status": "quiet", "message": "nothing new has been filed", "count": 0}
    save(root, 3)
    save(root, 2, "other")
    found = filed(ask)
    assert (found["status"], found["message"], found["count"]) == ("ok", "5 messages filed", 5)
    assert found["timestamp"].endswith("+00:00")
    assert filed(ask)["status"] == "quiet"
    save(root, 4)
    assert filed(ask)["count"] == 1


def test_a_failed_save_is_told_each_time(root: Path, ask: Ask) -> None:
    note(root, root.parent / "missing.jsonl", "gone")
    for _ in range(2):
        found = filed(ask)
        assert (found["status"], found["message"]) == ("error", "the last save failed: missing")
    save(root, 2, "missing")
    assert filed(ask)["status"] == "ok"


def settings(ask: Ask, **given: object) -> Any:
    answer = ask("castle_hook_settings", **given)
    assert not answer.is_error
    return answer.structured_content


def test_settings_of_hooks_are_shown_and_set(own_home: Path, root: Path, ask: Ask) -> None:
    shown = {
        "silent_save": True,
        "desktop_toast": False,
        "save_interval": 1,
        "wake_up": True,
        "recall": False,
    }
    assert settings(ask) == {"success": True, "settings": shown, "updated": []}
    assert not (own_home / ".castle").exists()
    assert settings(ask, desktop_toast=True) == {
        "success": True,
        "settings": {**shown, "desktop_toast": True},
        "updated": ["desktop_toast"],
    }
    assert config.load().hooks.desktop_toast
    compiled = json.loads((own_home / ".castle" / "hooks.json").read_text(encoding="utf-8"))
    assert compiled["desktop_toast"] is True


def test_a_setting_without_effect_is_stored_and_said_to_be_ignored(root: Path, ask: Ask) -> None:
    found = settings(ask, silent_save=False, desktop_toast=False)
    assert (found["settings"]["silent_save"], found["settings"]["desktop_toast"]) == (False, False)
    assert (found["updated"], found["ignored"]) == (["silent_save", "desktop_toast"], ["silent_save"])
    assert not config.load().hooks.silent_save


def test_a_settings_file_that_cannot_be_changed_is_an_error(own_home: Path, root: Path, ask: Ask) -> None:
    (own_home / ".castle").mkdir()
    (own_home / ".castle" / "castle.yaml").write_text("hooks: [", encoding="utf-8")
    assert ask("castle_hook_settings", desktop_toast=True).is_error
