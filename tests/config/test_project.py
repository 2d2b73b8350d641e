from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.config import ProjectConfig, Room, check_name, load_project, write_project
from castle.errors import ConfigError, RefusedError

FULL = ProjectConfig(
    wing="my_app",
    rooms=(Room("backend", "The server", ("api", "database")), Room("docs")),
    ignore=("*.min.js", "/build/", "!keep"),
    capture=False,
)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    directory = tmp_path / "here"
    directory.mkdir()
    return directory


def project(here: Path, text: str) -> ProjectConfig | None:
    (here / "castle.yaml").write_text(text, encoding="utf-8")
    return load_project(here)


def test_no_file_is_none(here: Path) -> None:
    assert load_project(here) is None
    assert load_project(here / "gone") is None


@pytest.mark.parametrize("text", ["", "# nothing\n", "\ufeff", "{}", "rooms: []\n"])
def test_an_empty_file_is_the_default(here: Path, text: str) -> None:
    assert project(here, text) == ProjectConfig(wing=None, rooms=(), ignore=(), capture=True)


def test_all_keys(here: Path) -> None:
    text = (
        "wing: my_app\nrooms:\n"
        "  - name: backend\n    description: The server\n    keywords: [api, database]\n"
        "  - {name: docs}\nignore: ['*.min.js', /build/, '!keep']\ncapture: false\n"
    )
    assert project(here, text) == FULL


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "wing: a\npalace_path: /tmp/x\n",
            ":2:1: palace_path belongs in ~/.castle/castle.yaml: a project's file",
        ),
        ("llm_endpoint: http://x\n", ":1:1: llm_endpoint belongs in ~/.castle/castle.yaml"),
        ("soar_rules_path: x\n", ":1:1: soar_rules_path belongs in"),
        ("hooks: {save_interval: 1}\n", ":1:1: hooks belongs in"),
        ("wings: a\n", ':1:1: unknown key "wings", did you mean wing?; a project\'s file may set only'),
        (
            "rooms:\n  - name: a\n    keyword: [b]\n",
            ':3:5: rooms.0.keyword: unknown key "keyword", did you mean',
        ),
        ("rooms:\n  - description: b\n", ":2:5: rooms.0.name is missing"),
        ("rooms:\n  - a\n", ':2:5: rooms.0: expected a mapping with a name, got "a"'),
        ("rooms: {a: b}\n", ":1:1: rooms: expected a list, got"),
        ("rooms:\n  - name: a\n  - name: a\n", ':3:5: the room "a" is listed twice'),
        (
            "rooms:\n  - name: a\n    keywords: [b, 3]\n",
            ":3:19: rooms.0.keywords.1: expected text, got 3",
        ),
        ("ignore: '*.js'\n", ':1:1: ignore: expected a list, got "*.js"'),
        ("ignore: [null]\n", ":1:10: ignore.0: expected text, got nothing"),
        ("capture: no\n", ':1:1: capture: expected true or false, got "no"'),
        ("wing: 2024\n", ":1:1: wing: expected text, got 2024 (put it in quotes)"),
        ("wing: ../etc\n", ':1:1: wing "../etc": a name has 1 to 128 characters'),
        ("wing: a/b\n", ':1:1: wing "a/b": a name'),
        ("wing: _a\n", ':1:1: wing "_a": a name'),
        ("wing: ''\n", ':1:1: wing "": a name'),
        ("wing: a,\n", ':1:7: "a," ends in a comma'),
        ("wing: a\nwing: b\n", ":2:1: wing is already set in line 1"),
        ("wing: [\n", ":2:1: "),
    ],
)
def test_anything_else_is_refused_with_its_position(here: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        project(here, text)
    assert str(caught.value).startswith(f"{here / 'castle.yaml'}{message}")
    assert "\n" not in str(caught.value)


def test_a_link_out_of_the_project_is_refused(here: Path) -> None:
    inside = here / "project"
    inside.mkdir()
    (here / "other.yaml").write_text("wing: stolen", encoding="utf-8")
    (inside / "castle.yaml").symlink_to("../other.yaml")
    with pytest.raises(ConfigError, match="is a link to a file outside the project"):
        load_project(inside)
    (inside / "castle.yaml").unlink()
    (inside / "real.yaml").write_text("wing: mine", encoding="utf-8")
    (inside / "castle.yaml").symlink_to("real.yaml")
    assert load_project(inside) == ProjectConfig(wing="mine")


def test_a_pipe_does_not_hang(here: Path) -> None:
    os.mkfifo(here / "castle.yaml")
    with pytest.raises(ConfigError, match="is not a regular file"):
        load_project(here)


def test_what_is_written_is_read_back(here: Path) -> None:
    assert write_project(here, FULL) is True
    assert load_project(here) == FULL
    assert [item.name for item in here.iterdir()] == ["castle.yaml"]


def test_a_new_file_follows_the_umask(here: Path) -> None:
    before = os.umask(0o027)
    try:
        write_project(here, FULL)
    finally:
        os.umask(before)
    assert stat.S_IMODE((here / "castle.yaml").stat().st_mode) == 0o640


def test_an_equal_file_is_left_as_it_is(here: Path) -> None:
    text = "# mine\nwing: 'a'\n"
    project(here, text)
    assert write_project(here, ProjectConfig(wing="a")) is False
    assert (here / "castle.yaml").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("text", "error"), [("wing: b\n", RefusedError), ("wing: [\n", ConfigError), ("wing: a,\n", ConfigError)]
)
def test_another_or_broken_file_is_never_overwritten(here: Path, text: str, error: type[Exception]) -> None:
    file = here / "castle.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(error):
        write_project(here, ProjectConfig(wing="a"))
    assert file.read_text(encoding="utf-8") == text
    assert [item.name for item in here.iterdir()] == ["castle.yaml"]


def test_what_could_not_be_read_back_is_not_written(here: Path) -> None:
    for config in (
        ProjectConfig(wing="../x"),
        ProjectConfig(wing="a", rooms=(Room("b"), Room("b"))),
        ProjectConfig(ignore=("a\udc80",)),
        ProjectConfig(ignore=("",)),
    ):
        with pytest.raises(ConfigError):
            write_project(here, config)
    assert list(here.iterdir()) == []


def test_of_two_processes_one_writes(here: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from castle.config import ProjectConfig, write_project\n"
        "from castle.errors import RefusedError\n"
        "try: sys.exit(0 if write_project(Path(sys.argv[1]), ProjectConfig(wing=sys.argv[2])) else 3)\n"
        "except RefusedError: sys.exit(4)"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(here), wing]) for wing in ("one", "two")]
    codes = sorted(process.wait() for process in running)
    assert codes == [0, 4]
    written = load_project(here)
    assert written is not None
    assert written.wing in {"one", "two"}


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "my_app",
        "O'Brien",
        "Größe 3.1",
        "日本語",
        "a-b",
        "x" * 128,
        "हिन्दी",
        "ภาษาไทย ที่",
        "u\u0308ber",
        "a\u0301",
    ],
)
def test_names_that_are_accepted(name: str) -> None:
    assert check_name("wing", name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a ",
        "-a",
        "a_",
        "a..b",
        "a/b",
        "a\\b",
        "a\0b",
        "a\nb",
        "a\n",
        "x" * 129,
        ".",
        "\u0301",
        "\u0301a",
        "_\u0301a",
        "a\u0301_",
        "\u093fa",
    ],
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="a name has 1 to 128 characters"):
        check_name("room", name)


_LINE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=20)
_NAME = st.from_regex(r"\A[a-z0-9]([a-z0-9 ._'-]{0,8}[a-z0-9])?\Z").filter(lambda name: ".." not in name)
_ROOMS = st.builds(Room, name=_NAME, description=_LINE, keywords=st.lists(_LINE, max_size=3).map(tuple))


@given(
    config=st.builds(
        ProjectConfig,
        wing=st.none() | _NAME,
        rooms=st.lists(_ROOMS, max_size=3, unique_by=lambda room: room.name).map(tuple),
        ignore=st.lists(_LINE, max_size=3).map(tuple),
        capture=st.booleans(),
    )
)
def test_every_project_survives_the_file(
    config: ProjectConfig, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("project")
    assert write_project(directory, config)
    assert load_project(directory) == config


def test_without_hard_links_nothing_is_overwritten_either(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert write_project(here, FULL) is True
    with pytest.raises(RefusedError):
        write_project(here, ProjectConfig(wing="other"))
    assert load_project(here) == FULL
    assert [item.name for item in here.iterdir()] == ["castle.yaml"]
