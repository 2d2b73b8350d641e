from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.config import keys, load, set_user, unset_user
from castle.config.files import replace
from castle.errors import ConfigError, RefusedError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / ".castle"
    directory.mkdir()
    return directory


def edited(home: Path, text: str, key: str, value: object) -> str:
    """Set a key in a file of this text and return the new text."""
    file = home / "castle.yaml"
    file.write_bytes(text.encode("utf-8"))
    set_user(key, value, env={"HOME": str(home.parent)})
    return file.read_bytes().decode("utf-8")


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("", "k_rrf", "70", "k_rrf: 70\n"),
        ("# mine\n", "k_rrf", 70, "# mine\nk_rrf: 70\n"),
        ("fusion: rrf", "k_rrf", "70", "fusion: rrf\nk_rrf: 70\n"),
        ("\ufefffusion: rrf\r\n", "k_rrf", "70", "\ufefffusion: rrf\r\nk_rrf: 70\r\n"),
        ("k_rrf: 60  # tuned\n# end\n", "k_rrf", "70", "k_rrf: 70  # tuned\n# end\n"),
        ("k_rrf:   60\nfusion: rrf\n", "k_rrf", "70", "k_rrf:   70\nfusion: rrf\n"),
        ("k_rrf: sixty\n", "k_rrf", "70", "k_rrf: 70\n"),
        ("k_rrf:\nfusion: rrf\n", "k_rrf", "70", "k_rrf: 70\nfusion: rrf\n"),
        ("k_rrf: # why\n", "k_rrf", "70", "k_rrf: 70 # why\n"),
        ("  k_rrf: 60\n", "fusion", "rrf", "  k_rrf: 60\n  fusion: rrf\n"),
        ("{k_rrf: 60, fusion: rrf}\n", "k_rrf", "70", "{k_rrf: 70, fusion: rrf}\n"),
        ('"k_rrf": 60\n', "k_rrf", "70", '"k_rrf": 70\n'),
        ("", "hooks.save_interval", "9", "hooks:\n  save_interval: 9\n"),
        ("hooks:\n", "hooks.save_interval", "9", "hooks: {save_interval: 9}\n"),
        (
            "hooks:\n    silent_save: false # no\n",
            "hooks.silent_save",
            "yes",
            "hooks:\n    silent_save: true # no\n",
        ),
        (
            "hooks: # all\n    silent_save: false\nk_rrf: 1\n",
            "hooks.save_interval",
            "9",
            "hooks: # all\n    save_interval: 9\n    silent_save: false\nk_rrf: 1\n",
        ),
        (
            "hooks: {silent_save: false} # x\n",
            "hooks.save_interval",
            "9",
            "hooks: {silent_save: false, save_interval: 9} # x\n",
        ),
        ("entity_languages: [en] # x\n", "entity_languages", "de,no", "entity_languages: [de, no] # x\n"),
        ("", "people_map", "{Bob: Robert}", "people_map: {Bob: Robert}\n"),
        ("", "embedder_model", "a: b #c", 'embedder_model: "a: b #c"\n'),
        ("embedder_dim: 3\n", "embedder_dim", "null", "embedder_dim: null\n"),
        ("", "palace_path", "~/p", "palace_path: ~/p\n"),
        ("", "palace_path", Path("/p q"), 'palace_path: "/p q"\n'),
    ],
)
def test_only_the_key_changes(home: Path, before: str, key: str, value: object, after: str) -> None:
    assert edited(home, before, key, value) == after
    settings = load(env={"HOME": str(home.parent)})
    assert settings.origin(key) == "user ~/.castle/castle.yaml"


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("k_rrf: 70\n", "k_rrf", ""),
        ("# mine\nk_rrf: 70  # tuned\n# end\n", "k_rrf", "# mine\n# end\n"),
        ("\ufefffusion: rrf\r\nk_rrf: 70\r\n", "fusion", "\ufeffk_rrf: 70\r\n"),
        ("fusion: rrf\nk_rrf: 70", "k_rrf", "fusion: rrf\n"),
        ("k_rrf:\nfusion: rrf\n", "k_rrf", "fusion: rrf\n"),
        ("  k_rrf: 60\n  fusion: rrf\n", "k_rrf", "  fusion: rrf\n"),
        ("{k_rrf: 60, fusion: rrf}\n", "k_rrf", "{fusion: rrf}\n"),
        ("entity_languages:\n  - en # x\n# y\nk_rrf: 1\n", "entity_languages", "# y\nk_rrf: 1\n"),
        ("llm_model: >\n  a\n  b\nk_rrf: 1\n", "llm_model", "k_rrf: 1\n"),
        ("llm_model: >\n  a\n  b\n", "llm_model", ""),
        ("hooks:\n  recall: true\n# z\nk_rrf: 1\n", "hooks.recall", "# z\nk_rrf: 1\n"),
        (
            "hooks: # all\n  recall: true\n  wake_up: false\n",
            "hooks.wake_up",
            "hooks: # all\n  recall: true\n",
        ),
        ("hooks: {recall: true, wake_up: false} # x\n", "hooks.recall", "hooks: {wake_up: false} # x\n"),
        ("hooks: {recall: true}\nk_rrf: 1\n", "hooks.recall", "k_rrf: 1\n"),
        ("people_map: {a: b,\n  c: d}\nk_rrf: 1\n", "people_map", "k_rrf: 1\n"),
    ],
)
def test_only_the_key_goes(home: Path, before: str, key: str, after: str) -> None:
    file = home / "castle.yaml"
    file.write_bytes(before.encode("utf-8"))
    assert unset_user(key, home=home) == (file, True)
    assert file.read_bytes().decode("utf-8") == after
    assert load(env={}, home=home).origin(key) == "default"
    assert unset_user(key, home=home) == (file, False)


@pytest.mark.parametrize("text", ["--- {k_rrf: &a 1, embedder_dim: *a}\n", "? k_rrf\n: 1\nfusion: rrf\n"])
def test_what_cannot_be_taken_out_safely_is_left(home: Path, text: str) -> None:
    file = home / "castle.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises((RefusedError, ConfigError)):
        unset_user("k_rrf", home=home)
    assert file.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("text", "key", "value", "line"),
    [
        ("entity_languages:\n  - en # x\n", "entity_languages", "de", "entity_languages: [de]"),
        ("llm_model: >\n  a\n  b\n", "llm_model", "c", "llm_model: c"),
        ("{fusion: rrf}\n", "k_rrf", "70", "k_rrf: 70"),
        ("fusion: rrf\n...\n", "k_rrf", "70", "k_rrf: 70"),
        ("hooks: {\n silent_save: true }\n", "hooks.save_interval", "9", "hooks: {save_interval: 9}"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(
    home: Path, text: str, key: str, value: str, line: str
) -> None:
    with pytest.raises(RefusedError) as caught:
        edited(home, text, key, value)
    assert str(caught.value).endswith(f"write there: {line}")
    assert (home / "castle.yaml").read_text(encoding="utf-8") == text
    assert [item.name for item in home.iterdir()] == ["castle.yaml"]


@pytest.mark.parametrize("text", ["k_rrf: 60,\n", "fusion: [\n", "nonsense: 1\n", "weight_dense: heavy\n"])
def test_a_broken_file_is_left_alone(home: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"castle\.yaml:\d+:\d+: "):
        edited(home, text, "k_rrf", "70")
    assert (home / "castle.yaml").read_text(encoding="utf-8") == text


def test_a_wrong_key_or_value_changes_nothing(home: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean k_rrf"):
        set_user("k_rff", "1", home=home)
    with pytest.raises(ConfigError, match="argument: k_rrf: expected a whole number"):
        set_user("k_rrf", "many", home=home)
    with pytest.raises(ConfigError, match=r'expected text, got "a\\udc80"'):
        set_user("embedder_model", "a\udc80", home=home)
    with pytest.raises(ConfigError, match="not valid Unicode"):
        set_user("palace_path", "/a\udc80", home=home)
    assert list(home.iterdir()) == []


def test_a_value_that_yaml_cannot_hold_is_refused_without_a_trace(home: Path) -> None:
    with pytest.raises(RefusedError):
        set_user("llm_api_key", "a\x7fb", home=home)
    assert list(home.iterdir()) == []


def test_the_file_and_a_new_directory_are_private(tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    file = set_user("llm_api_key", "sk-1", home=home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert load(home=home, env={}).llm_api_key == "sk-1"


def test_a_file_open_to_others_becomes_private(home: Path) -> None:
    file = home / "castle.yaml"
    file.touch(mode=0o644)
    set_user("llm_api_key", "sk-1", home=home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_secret_is_in_no_message(home: Path) -> None:
    with pytest.raises(RefusedError) as caught:
        edited(home, "{fusion: rrf}\n", "llm_api_key", "sk-very-secret")
    assert "sk-very-secret" not in str(caught.value)


def test_a_linked_file_stays_a_link(home: Path, tmp_path: Path) -> None:
    dotfile = tmp_path / "dotfiles.yaml"
    dotfile.write_text("# mine\n", encoding="utf-8")
    (home / "castle.yaml").symlink_to(dotfile)
    set_user("k_rrf", "70", home=home)
    assert (home / "castle.yaml").is_symlink()
    assert dotfile.read_text(encoding="utf-8") == "# mine\nk_rrf: 70\n"


def test_a_relative_path_is_written_whole(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    set_user("palace_path", "here", home=home)
    assert load(home=home, env={}).palace_path == tmp_path / "here"


def test_two_processes_lose_nothing(home: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from castle.config import set_user\n"
        "for key in sys.argv[2:]: set_user(key, '1', home=Path(sys.argv[1]))"
    )
    names = [n for n, k in keys().items() if k.kind in {int, float} and k.name != "quality_threshold_medium"]
    halves = (names[::2], names[1::2])
    running = [subprocess.Popen([sys.executable, "-c", code, str(home), *half]) for half in halves]
    assert [process.wait() for process in running] == [0, 0]
    settings = load(home=home, env={})
    assert all(settings.value(name) == 1 for name in names)
    assert [item.name for item in home.iterdir()] == ["castle.yaml"]


@given(before=st.text("ab:k_rf 16#\n-[]{},'\"|>&*!", max_size=40), value=st.integers(1, 99))
def test_a_change_never_loses_a_line(
    before: str, value: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    file = home / "castle.yaml"
    file.write_text(before, encoding="utf-8", newline="")
    try:
        set_user("k_rrf", value, home=home)
    except (ConfigError, RefusedError):
        assert file.read_text(encoding="utf-8") == before
    else:
        after = file.read_text(encoding="utf-8")
        for line in before.splitlines():
            assert line in after or line.lstrip().startswith(("k_rrf", '"k_rrf', "'k_rrf", "{"))
        assert load(home=home, env={}).k_rrf == value


def test_what_a_killed_process_has_left_goes_with_a_later_change(tmp_path: Path) -> None:
    file = tmp_path / "wakeup.json"
    old, new = (tmp_path / f".wakeup.json.{name * 12}.tmp" for name in "ab")
    other = tmp_path / ".wakeup.json.mine.tmp"
    for path in (old, new, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (1, 1))
    replace(file, b"{}", 0o600)
    assert file.read_bytes() == b"{}"
    assert sorted(tmp_path.glob(".wakeup*")) == sorted((new, other))
