from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.config import Settings, hints, keys, load
from castle.config.values import from_text, plain_scalar, to_yaml
from castle.config.yamlfile import parse
from castle.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / ".castle"
    directory.mkdir()
    return directory


def write(home: Path, text: str | bytes) -> Path:
    file = home / "castle.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return file


def env_of(home: Path, **more: str) -> Mapping[str, str]:
    return {"HOME": str(home.parent), **more}


def refusal(home: Path, text: str | bytes) -> str:
    """Load a file that must be refused and left untouched; return the message after its path."""
    file = write(home, text)
    before = file.read_bytes()
    with pytest.raises(ConfigError) as caught:
        load(env=env_of(home))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(file))
    assert file.read_bytes() == before
    assert [item.name for item in home.iterdir()] == ["castle.yaml"]
    return message.removeprefix(str(file))


def test_without_anything_the_defaults_hold(home: Path) -> None:
    settings = load(env=env_of(home))
    assert settings.palace_path == home / "palace"
    assert settings.embedder_model == "builtin"
    assert settings.embedder_dim is None
    assert (settings.fusion, settings.k_rrf, settings.weight_kg) == ("scores", 60, 0.5)
    assert settings.hooks.save_interval == 1
    assert list(settings.hall_keywords) == [
        "emotions", "consciousness", "memory", "technical", "identity", "family", "creative",
    ]  # fmt: skip
    assert {settings.origin(key) for key in keys()} == {"default"}


def test_settings_cannot_be_changed(home: Path) -> None:
    settings = load(env=env_of(home))
    with pytest.raises(FrozenInstanceError):
        settings.k_rrf = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        settings.hall_keywords["new"] = ()  # type: ignore[index]


def test_flag_goes_before_environment_before_file_before_default(home: Path) -> None:
    write(home, "k_rrf: 1\nweight_dense: 2\nhooks:\n  save_interval: 3\nfusion: rrf\n")
    env = env_of(home, CASTLE_K_RRF="10", CASTLE_WEIGHT_DENSE="20.5")
    settings = load({"k_rrf": 100, "fusion": None}, env=env)
    assert (settings.k_rrf, settings.weight_dense, settings.hooks.save_interval) == (100, 20.5, 3)
    assert settings.origin("k_rrf") == "flag"
    assert settings.origin("weight_dense") == "environment CASTLE_WEIGHT_DENSE"
    assert settings.origin("hooks.save_interval") == "user ~/.castle/castle.yaml"
    assert (settings.fusion, settings.origin("fusion")) == ("rrf", "user ~/.castle/castle.yaml")
    assert settings.origin("weight_sparse") == "default"


def test_castle_home_moves_everything(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(other, "k_rrf: 5")
    settings = load(env={"HOME": "/nowhere", "CASTLE_HOME": str(other)})
    assert (settings.k_rrf, settings.palace_path, settings.home) == (5, other / "palace", other)
    assert settings.origin("k_rrf") == f"user {other}/castle.yaml"
    assert load(env={"HOME": str(tmp_path), "CASTLE_HOME": "~/other"}).home == other
    assert load(env={"HOME": "/nowhere", "CASTLE_HOME": "/elsewhere"}, home=other).k_rrf == 5


def test_paths_are_expanded_and_relative_to_what_names_them(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(home, "palace_path: mine\nsoar_rules_path: ~/my.soar")
    settings = load(env=env_of(home))
    assert settings.palace_path == home / "mine"
    assert settings.soar_rules_path == tmp_path / "my.soar"
    assert load(env=env_of(home, CASTLE_PALACE_PATH="here")).palace_path == tmp_path / "here"
    assert load({"palace_path": Path("flag")}, env=env_of(home)).palace_path == tmp_path / "flag"
    assert load({"palace_path": "~/flag"}, env=env_of(home)).palace_path == tmp_path / "flag"


def test_old_names_of_variables_count_after_the_new_ones(home: Path) -> None:
    settings = load(env=env_of(home, MEMPAL_PALACE_PATH="/old", MEMPAL_ENTITY_LANGUAGES="de, no"))
    assert settings.palace_path == Path("/old")
    assert settings.entity_languages == ("de", "no")
    assert settings.origin("palace_path") == "environment MEMPAL_PALACE_PATH"
    both = load(env=env_of(home, MEMPAL_PALACE_PATH="/old", CASTLE_PALACE_PATH="/new"))
    assert both.palace_path == Path("/new")


def test_an_empty_variable_is_not_set(home: Path) -> None:
    settings = load(env=env_of(home, CASTLE_K_RRF="", CASTLE_PALACE_PATH="", CASTLE_HOME=""))
    assert settings == load(env=env_of(home))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CASTLE_K_RRF", "sixty"),
        ("CASTLE_K_RRF", "60.0"),
        ("CASTLE_K_RRF", "0"),
        ("CASTLE_K_RRF", "9" * 5000),
        ("CASTLE_WEIGHT_DENSE", "nan"),
        ("CASTLE_WEIGHT_DENSE", "1e999"),
        ("CASTLE_WEIGHT_DENSE", "1_0"),
        ("CASTLE_INFO_WEIGHT_ENABLED", "maybe"),
        ("CASTLE_FUSION", "RRF"),
        ("CASTLE_EMBEDDING_DEVICE", "tpu"),
        ("CASTLE_PALACE_PATH", "~nobody-of-that-name/x"),
        ("CASTLE_LLM_PROVIDER", "mystery"),
    ],
)
def test_a_bad_variable_is_an_error_that_names_it(home: Path, name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"^environment {name}: {name[7:].lower()}: expected ") as caught:
        load(env=env_of(home, **{name: text}))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("YES", True), ("on", True), ("false", False), ("0", False), ("No", False)],
)
def test_booleans_in_variables(home: Path, text: str, value: bool) -> None:
    assert load(env=env_of(home, CASTLE_INFO_WEIGHT_ENABLED=text)).info_weight_enabled is value


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "~", "{}", "\ufeff", "hooks:\n"])
def test_an_empty_file_sets_nothing(home: Path, text: str) -> None:
    write(home, text)
    settings = load(env=env_of(home))
    assert not settings.origins


def test_a_byte_order_mark_is_tolerated(home: Path) -> None:
    write(home, "\ufeffk_rrf: 7\r\nfusion: rrf\r\n")
    assert load(env=env_of(home)).k_rrf == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k_rrf: 60,\n", ':1:8: "60," ends in a comma; remove it, or put the text in quotes'),
        ("palace_path: /x,\n", ':1:14: "/x," ends in a comma; remove it, or put the text in quotes'),
        ('{"k_rrf": 60,}\n', ":1:13: a comma with nothing after it"),
        ("entity_languages:\n  [en, de, ]\n", ":2:10: a comma with nothing after it"),
        ("fusion: rrf\nk_rrf: 1\nfusion: rrf\n", ":3:1: fusion is already set in line 1"),
        ("hooks:\n  save_interval: 1\n  save_interval: 2\n", ":3:3: save_interval is already set in line 2"),
        ("k_rfr: 1\n", ':1:1: unknown key "k_rfr", did you mean k_rrf?'),
        ("hooks:\n  silent_sav: 3\n", ':2:3: hooks: unknown key "silent_sav", did you mean silent_save?'),
        ("hooks.save_interval: 3\n", ":1:1: write save_interval indented under hooks:"),
        ("hooks: 3\n", ":1:1: hooks: expected a mapping of its keys"),
        ("collection_name: x\n", ':1:1: unknown key "collection_name"'),
        ("wing: x\n", ":1:1: wing belongs in the castle.yaml of a project, not in the user's"),
        ("\n  k_rrf: sixty\n", ':2:3: k_rrf: expected a whole number from 1 to 100000, got "sixty"'),
        ("k_rrf: '60'\n", ':1:1: k_rrf: expected a whole number from 1 to 100000, got "60"'),
        ("k_rrf: true\n", ":1:1: k_rrf: expected a whole number from 1 to 100000, got true"),
        ("k_rrf: 0\n", ":1:1: k_rrf: expected a whole number from 1 to 100000, got 0"),
        ("k_rrf:\n", ":1:1: k_rrf: expected a whole number from 1 to 100000, got nothing"),
        ("info_weight_enabled: yes\n", ':1:1: info_weight_enabled: expected true or false, got "yes"'),
        ("embedder_model: 3\n", ":1:1: embedder_model: expected text, got 3 (put it in quotes)"),
        ("embedder_model: ''\n", ':1:1: embedder_model: expected text, got ""'),
        ("embedder_model: [a]\n", ":1:1: embedder_model: expected text, got a list"),
        ("palace_path: {a: b}\n", ":1:1: palace_path: expected a path, got a mapping"),
        ("palace_path: ~\n", ":1:1: palace_path: expected a path, got nothing"),
        ("weight_dense: .inf\n", ':1:1: weight_dense: expected a number from 0 to 1000, got ".inf"'),
        ("fusion: ranks\n", ':1:1: fusion: expected one of scores, rrf, got "ranks"'),
        ("llm_timeout: 0\n", ":1:1: llm_timeout: expected a number above 0, at most 86400, got 0"),
        ("llm_api_key: 12345\n", ":1:1: llm_api_key: expected text, got a hidden value"),
        ("k_rrf: [1\n", ":2:1: expected ',' or ']', but got '<stream end>'"),
        ("k_rrf: 1\n\tfusion: rrf\n", ":2:1: found character '\\t' that cannot start any token"),
        ("k_rrf 60\n", ":1:1: expected lines of the form key: value"),
        ("- k_rrf\n", ":1:1: expected lines of the form key: value"),
        ("a: &x 1\nb: *x\n", ":1:4: anchors and aliases are not allowed here"),
        ("k_rrf: !!python/name:os\n", ':1:8: the tag "tag:yaml.org,2002:python/name:os" is not allowed'),
        ("k_rrf: 1\n---\nk_rrf: 2\n", ":2:1: but found another document"),
        ("[a]: 1\n", ":1:1: a key must be one word"),
        (b"k_rrf: 1\nfusion: \xff\n", ":2:9: is not UTF-8; save the file as UTF-8"),
        (b"\xff\xfek\0:\0", ":1:1: is not UTF-8; save the file as UTF-8"),
        ("k_rrf: 1\nfusion: a\0b\n", ":2:10: the character U+0000 is not allowed"),
        ("quality_threshold_medium: 0.7\n", None),
    ],
)  # fmt: skip
def test_a_broken_file_is_refused_with_its_position(
    home: Path, text: str | bytes, message: str | None
) -> None:
    if message is None:
        write(home, text)
        with pytest.raises(ConfigError, match="must not be above quality_threshold_high"):
            load(env=env_of(home))
        return
    assert refusal(home, text) == message


@pytest.mark.parametrize("text", ["[" * 50_000, "a: " + "[" * 500 + "]" * 500, "{a: " * 10_000])
def test_deep_nesting_is_refused(home: Path, text: str) -> None:
    assert "nested deeper than 20 levels" in refusal(home, text)


def test_a_huge_file_is_refused(home: Path) -> None:
    write(home, "# " + "x" * 2_000_000)
    with pytest.raises(ConfigError, match="larger than"):
        load(env=env_of(home))


def test_what_is_not_a_readable_file_is_refused(home: Path) -> None:
    file = home / "castle.yaml"
    file.mkdir()
    with pytest.raises(ConfigError, match="is not a regular file"):
        load(env=env_of(home))
    file.rmdir()
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="is not a regular file"):
        load(env=env_of(home))
    file.unlink()
    file.symlink_to("gone.yaml")
    with pytest.raises(ConfigError, match="is a link to gone.yaml, which is not there"):
        load(env=env_of(home))


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be read: Not a directory"):
        load(env={"CASTLE_HOME": str(tmp_path / "file")})


def test_core_schema_of_yaml_keeps_norway_dates_and_octals(home: Path) -> None:
    write(home, "entity_languages: [no, 2024-01-01, '12', 012, on]\n")
    assert load(env=env_of(home)).entity_languages == ("no", "2024-01-01", "12", "012", "on")


def test_mappings_replace_the_default(home: Path) -> None:
    write(home, "hall_keywords:\n  work: [meeting, report]\npeople_map: {Bob: Robert}\n")
    settings = load(env=env_of(home))
    assert dict(settings.hall_keywords) == {"work": ("meeting", "report")}
    assert dict(settings.people_map) == {"Bob": "Robert"}
    assert refusal(home, "hall_keywords: {work: meeting}\n").startswith(
        ":1:1: hall_keywords: expected a mapping"
    )


def test_keys_that_are_not_read_yet_are_accepted_and_say_what_will_read_them() -> None:
    waiting = {name: key.pending for name, key in keys().items() if key.pending}
    assert waiting == {"topic_tunnel_min_count": "tunnels"}


def test_every_default_is_accepted_in_a_file(home: Path) -> None:
    lines = [f"{name}: {to_yaml(key.default)}" for name, key in keys().items() if "." not in name]
    write(home, "\n".join(lines))
    settings = load(env=env_of(home))
    for name, key in keys().items():
        if name != "palace_path":
            assert settings.value(name) == key.default
    assert settings.palace_path == home / "palace"


def test_every_key_is_documented_and_has_a_variable_or_is_a_group() -> None:
    for name, key in keys().items():
        assert key.doc.endswith("."), name
        assert key.expected
        for variable in key.env:
            assert variable.startswith(("CASTLE_", "MEMPAL_", "CELL_MEM_"))
    seen = [variable for key in keys().values() for variable in key.env]
    assert len(seen) == len(set(seen))


def test_an_unknown_key_in_the_program_is_an_error(home: Path) -> None:
    settings = load(env=env_of(home))
    with pytest.raises(ConfigError, match="did you mean k_rrf"):
        settings.origin("k_rff")
    with pytest.raises(ConfigError, match='unknown key "zzz"'):
        load({"zzz": 1}, env=env_of(home))


def test_hints_name_what_is_not_read(home: Path) -> None:
    assert hints(env_of(home)) == ()
    (home / "config.json").write_text("{broken", encoding="utf-8")
    file = write(home, "llm_api_key: sk-1")
    file.chmod(0o644)
    found = hints(env_of(home, CASTLE_K_RFR="1", CASTLE_PROJECT="x"))
    assert found == (
        "~/.castle/config.json is not read; its settings go into ~/.castle/castle.yaml",
        'environment: unknown variable "CASTLE_K_RFR", did you mean CASTLE_K_RRF?',
        f"others can read the key in ~/.castle/castle.yaml: chmod 600 {file}",
    )


def test_nothing_heavy_is_imported_before_a_value_is_read(tmp_path: Path) -> None:
    code = (
        "import sys; from castle.config import load; load(); "
        "print([m for m in ('yaml', 'pydantic', 'json.tool', 'rich') if m in sys.modules])"
    )
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert done.stdout == "[]\n"


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co", "Zl", "Zp"]))
_NUMBERS = st.integers(-(10**17), 10**17) | st.floats(allow_nan=False, allow_infinity=False)
_KEYS = st.text("abcdef_ :,#", min_size=1, max_size=5)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(_VALUES)
def test_what_is_written_is_read_back(value: object) -> None:
    document = parse(f"key: {to_yaml(value)}\n", Path("x"))
    assert document.data["key"] == value
    assert type(document.data["key"]) is type(value)


@given(st.text())
def test_any_text_in_a_file_is_read_or_refused(text: str) -> None:
    try:
        parse(text, Path("x"))
    except ConfigError as error:
        assert "\n" not in str(error)


@given(st.text(), st.sampled_from(sorted(keys())))
def test_any_text_in_a_variable_is_read_or_refused(text: str, name: str) -> None:
    key = keys()[name]
    try:
        from_text(key, text)
    except ConfigError as error:
        assert name in str(error)


def test_plain_scalars() -> None:
    read = [
        plain_scalar(text) for text in ("1", "-1", "1.5", ".5", "1e3", "01", "1.", "true", "True", "null")
    ]
    assert read == [1, -1, 1.5, 0.5, 1000.0, "01", 1.0, True, True, None]


def test_settings_are_one_object(home: Path) -> None:
    settings: Settings = load(env=env_of(home))
    assert settings.value("hooks.save_interval") == 1
