from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from castle import config
from castle.config.compiled import compile_hooks
from castle.errors import ConfigError
from castle.hooks.settings import load


@pytest.fixture
def home(own_home: Path) -> Path:
    path = own_home / ".castle"
    path.mkdir()
    return path


def compiled() -> None:
    compile_hooks(config.load())


def test_what_hooks_read_is_what_the_settings_say(home: Path) -> None:
    config.set_user("hooks.save_interval", "15")
    config.set_user("hooks.recall", "true")
    config.set_user("hooks.wake_up", "false")
    config.set_user("palace_path", "~/elsewhere")
    compiled()
    found = load(None, os.environ)
    assert found.palace == str(config.load().palace_path) == str(home.parent / "elsewhere")
    assert (found.save_interval, found.recall, found.wake_up) == (15, True, False)
    assert (found.current, found.trouble) == (True, "")
    written = json.loads((home / "hooks.json").read_text(encoding="utf-8"))
    assert written["v"] == 1
    assert written["desktop_toast"] is False
    assert written["source"] == str(home / "castle.yaml")
    assert stat.S_IMODE((home / "hooks.json").stat().st_mode) == 0o600


def test_without_a_file_the_defaults_are_compiled(home: Path) -> None:
    compiled()
    found = load(None, os.environ)
    assert found.palace == str(home / "palace")
    assert (found.save_interval, found.recall, found.wake_up, found.current) == (1, False, True, True)


def test_the_environment_of_one_command_does_not_stay(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASTLE_PALACE_PATH", "/only/now")
    compile_hooks(config.load({"palace_path": "/flag"}))
    assert json.loads((home / "hooks.json").read_text(encoding="utf-8"))["palace"] == str(home / "palace")


def test_a_home_of_its_own_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("CASTLE_HOME", str(other))
    config.set_user("hooks.save_interval", "3")
    compiled()
    assert load(None, os.environ).save_interval == 3
    assert load(None, os.environ).palace == str(other / "palace")


def test_a_home_that_is_not_there_is_not_made(own_home: Path) -> None:
    compiled()
    assert not (own_home / ".castle").exists()


def test_the_same_settings_are_not_written_again(home: Path) -> None:
    compiled()
    before = (home / "hooks.json").stat().st_ino
    compiled()
    assert (home / "hooks.json").stat().st_ino == before


def test_a_file_that_was_edited_by_hand_is_seen_to_be_newer(home: Path) -> None:
    compiled()
    (home / "castle.yaml").write_text("hooks:\n  save_interval: 7\n", encoding="utf-8")
    assert not load(None, os.environ).current
    compiled()
    found = load(None, os.environ)
    assert (found.current, found.save_interval) == (True, 7)


def test_a_file_that_was_never_compiled_is_said(home: Path) -> None:
    (home / "castle.yaml").write_text("hooks:\n  save_interval: 7\n", encoding="utf-8")
    found = load(None, os.environ)
    assert (found.current, found.save_interval) == (False, 1)
    assert "not compiled" in found.trouble


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"v": 2}', b"\xff", b'{"a":' * 50_000])
def test_what_is_broken_is_said_and_the_defaults_hold(home: Path, data: bytes) -> None:
    (home / "hooks.json").write_bytes(data)
    found = load(None, os.environ)
    assert "hooks.json cannot be used" in found.trouble
    assert (found.palace, found.save_interval, found.wake_up) == (str(home / "palace"), 1, True)
    assert not found.current


@pytest.mark.parametrize("interval", [0, -3, "7", None, True, 1.5])
def test_a_wrong_interval_is_one(home: Path, interval: object) -> None:
    (home / "hooks.json").write_text(json.dumps({"v": 1, "save_interval": interval}), encoding="utf-8")
    assert load(None, os.environ).save_interval == 1


def test_a_broken_user_file_is_not_compiled(home: Path) -> None:
    settings = config.load()
    (home / "castle.yaml").write_text("hooks: [", encoding="utf-8")
    with pytest.raises(ConfigError):
        compile_hooks(settings)
