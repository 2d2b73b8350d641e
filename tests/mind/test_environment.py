"""What is collected of a project: from its files alone, and never from outside."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from castle.errors import UsageError
from castle.mind.environment.checking import check_project, collect
from castle.mind.environment.collect import collect_environment
from castle.mind.environment.files import file_state
from castle.mind.environment.manifests import requirement
from castle.mind.environment.tools import tool_versions, version_in
from castle.mind.environment.values import MAX_ENTRIES
from castle.store.palace import Palace


def no_tools(project: Path, present: list[str]) -> dict[str, str]:
    return {}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def written(project: Path, **files: str) -> dict[str, Any]:
    for name, text in files.items():
        (project / name.replace("__", "-").replace("_", ".")).write_text(text, encoding="utf-8")
    return dict(collect_environment(project, tools=no_tools).values)


def test_a_python_project(project: Path) -> None:
    values = written(
        project,
        pyproject_toml="""
            [project]
            name = "shop"
            version = "2.0"
            requires-python = ">=3.11"
            dependencies = ["Django>=5,<6", "Foo_Bar==1.10 ; python_version < '3.13'", "plain"]
            [project.optional-dependencies]
            dev = ["pytest>=8"]
            [dependency-groups]
            lint = ["ruff==0.5.0", {include-group = "x"}]
        """,
        uv_lock='[[package]]\nname = "django"\nversion = "5.0.7"\n[[package]]\nname = "x"\nversion = "1"\n'
        '[[package]]\nname = "x"\nversion = "2"\n',
        requirements_txt="# all\nrequests[socks]==2.32.3  # why\n-r other.txt\nhttps://x.example/a.whl\n",
    )
    manifest = values["pyproject.toml"]
    assert (manifest["django"], manifest["foo-bar"], manifest["plain"]) == (">=5,<6", "1.10", "")
    assert (manifest["pytest"], manifest["ruff"]) == (">=8", "0.5.0")
    assert (manifest["requires-python"], manifest["version"]) == (">=3.11", "2.0")
    assert values["uv.lock"] == {"django": "5.0.7", "x": ["1", "2"]}
    assert values["requirements.txt"] == {"requests": "2.32.3"}
    assert values["packages"] == {
        "django": "5.0.7", "foo-bar": "1.10", "ruff": "0.5.0", "requests": "2.32.3",
    }  # fmt: skip
    assert set(values["lock_hashes"]) == {"uv.lock"}


def test_a_project_of_node(project: Path) -> None:
    values = written(
        project,
        package_json=json.dumps(
            {
                "name": "web",
                "engines": {"node": ">=18"},
                "dependencies": {"react": "^18.2.0"},
                "devDependencies": {"vite": "5.0.0"},
            }
        ),
        package__lock_json=json.dumps(
            {
                "packages": {
                    "": {"version": "1.0.0"},
                    "node_modules/react": {"version": "18.3.1"},
                    "node_modules/@x/y": {"version": "2.0.0"},
                    "node_modules/react/node_modules/z": {"version": "9.0.0"},
                }
            }
        ),
    )
    assert values["package.json"]["react"] == "^18.2.0"
    assert values["package.json"]["engines.node"] == ">=18"
    assert values["package-lock.json"] == {"react": "18.3.1", "@x/y": "2.0.0"}
    assert values["packages"]["react"] == "18.3.1"
    assert values["packages"]["vite"] == "5.0.0"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("yarn.lock", '"react@^18.0.0, react@^18.2.0":\n  version "18.3.1"\n', {"react": "18.3.1"}),
        ("yarn.lock", '"@x/y@npm:^1":\n  version: 1.2.0\n', {"@x/y": "1.2.0"}),
        (
            "pnpm-lock.yaml",
            "importers:\n  .:\n    dependencies:\n      react:\n        specifier: ^18\n"
            "        version: 18.3.1(x@1)\npackages:\n  '@x/y@2.0.0':\n    resolution: {}\n  /z@1.0.0:\n",
            {"react": "18.3.1", "@x/y": "2.0.0", "z": "1.0.0"},
        ),
        (
            "Cargo.toml",
            '[package]\nname = "a"\nedition = "2021"\n[dependencies]\nserde = { version = "1.0.1" }\n',
            {"name": "a", "edition": "2021", "serde": "1.0.1"},
        ),
        ("Cargo.lock", '[[package]]\nname = "serde_json"\nversion = "1.0.1"\n', {"serde_json": "1.0.1"}),
        (
            "go.mod",
            "module example.com/a\n\ngo 1.22\n\nrequire (\n\tgithub.com/x/y v1.2.3 // indirect\n)\n",
            {"module": "example.com/a", "go": "1.22", "github.com/x/y": "v1.2.3"},
        ),
        ("poetry.lock", '[[package]]\nname = "Foo_Bar"\nversion = "1"\n', {"foo-bar": "1"}),
        ("Pipfile.lock", '{"default": {"Django": {"version": "==5.0"}}}', {"django": "5.0"}),
        (".nvmrc", "# team\nv20.11.0\n", {"version": "v20.11.0"}),
        (
            ".tool-versions",
            "nodejs 20.11.0 # here\npython 3.12.1\n",
            {"nodejs": "20.11.0", "python": "3.12.1"},
        ),
    ],
)
def test_other_files(project: Path, name: str, text: str, expected: dict[str, str]) -> None:
    (project / name).write_text(text, encoding="utf-8")
    assert collect_environment(project, tools=no_tools).values[name] == expected


def test_what_cannot_be_read_is_left_out_and_told(project: Path) -> None:
    many = {str(i): {"version": "1"} for i in range(MAX_ENTRIES + 1)}
    for name, text in {
        "package.json": "{",
        "pyproject.toml": "[[[",
        "Cargo.toml": "\xff",
        "Pipfile.lock": json.dumps({"default": many}),
        "package-lock.json": "[" * 100_000,
    }.items():
        (project / name).write_text(text, encoding="latin-1")
    found = collect_environment(project, tools=no_tools)
    assert set(found.values) == {"lock_hashes"}
    assert len(found.notes) == 5
    with pytest.raises(UsageError, match="is not a directory"):
        collect_environment(project / "package.json")


def test_no_link_is_followed_out_of_the_project(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text('{"dependencies": {"secret": "1"}}', encoding="utf-8")
    (project / "package.json").symlink_to(outside)
    (project / "src").symlink_to(tmp_path)
    (project / "loop").symlink_to(project / "loop")
    (project / "real").write_text("x", encoding="utf-8")
    (project / "inside").symlink_to(project / "real")
    os.mkfifo(project / "pipe")
    wanted = ["src/outside.json", "loop", "pipe", "inside", "real", "none", "real/x", "src"]
    found = collect_environment(project, files=wanted, tools=no_tools)
    assert "package.json" not in found.values
    assert any("leads out of the project" in note for note in found.notes)
    states = found.files
    assert states["src/outside.json"].problem == "it leads out of the project"
    assert states["loop"].problem
    assert states["pipe"].problem == "it is no file"
    assert states["inside"].sha256 == states["real"].sha256 != ""
    assert states["none"].sha256 == states["none"].problem == ""
    assert states["real/x"].sha256 == ""
    assert file_state(project, "real", most=0).problem == "it has 1 bytes, more than 0"


def test_a_name_that_two_lock_files_disagree_about_is_in_neither_version(project: Path) -> None:
    values = written(
        project,
        uv_lock='[[package]]\nname = "redis"\nversion = "5.0.0"\n',
        Cargo_lock='[[package]]\nname = "redis"\nversion = "0.25.0"\n',
    )
    assert "redis" not in values.get("packages", {})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a", ("a", "")),
        ("a == 1.0", ("a", "1.0")),
        ("a===1.0", ("a", "1.0")),
        ("a==1.*", ("a", "==1.*")),
        ("a[x,y] >=1 , <2 ; sys_platform == 'x'", ("a", ">=1,<2")),
        ("a==1 --hash=sha256:00", ("a", "1")),
        ("a @ https://x.example/a.whl", None),
        ("-e .", None),
        ("", None),
    ],
)
def test_lines_of_requirements(line: str, expected: tuple[str, str] | None) -> None:
    assert requirement(line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v20.11.0\n", "20.11.0"),
        ("Python 3.13.0rc1", "3.13.0rc1"),
        ("git version 2.39.2 (Apple Git-143)", "2.39.2"),
        ("go version go1.22.3 linux/amd64", "1.22.3"),
        ("rustc 1.78.0-nightly (abc 2024-01-01)", "1.78.0-nightly"),
        ("no such tool", None),
    ],
)
def test_what_tools_print(text: str, expected: str | None) -> None:
    assert version_in(text) == expected


def test_tools_are_asked_without_a_shell_and_not_those_of_the_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    program(tmp_path / "bin" / "node", 'echo "v21.0.0$NODE_OPTIONS"')
    program(tmp_path / "bin" / "git", "exec sleep 60")
    program(tmp_path / "bin" / "rustc", "echo rustc 1.80.0")
    program(project / "bin" / "python3", "touch ran; echo Python 3.9.9")
    monkeypatch.setenv("PATH", f"{project / 'bin'}{os.pathsep}{tmp_path / 'bin'}{os.pathsep}/bin")
    monkeypatch.setenv("NODE_OPTIONS", "-r /evil.js")
    assert tool_versions(project, [], timeout=0.3) == {"node_version": "21.0.0"}
    assert not (project / "ran").exists()


def test_the_projects_own_environment_tells_its_python(project: Path) -> None:
    (project / ".venv").mkdir()
    config = "home = /usr/bin\nversion_info = 3.12.4.final.0\n"
    (project / ".venv" / "pyvenv.cfg").write_text(config, encoding="utf-8")
    assert collect_environment(project, tools=no_tools).values["python_version"] == "3.12.4"


def test_checking_a_project_keeps_what_others_reported(palace: Palace, project: Path) -> None:
    from castle.mind.environment.checking import check_environment

    check_environment(palace, {"region": "eu", "package.json": {"old": "1"}}, wing="w", actor="t")
    (project / "Cargo.toml").write_text('[dependencies]\nserde = "1.0.1"\n', encoding="utf-8")
    assert collect(project)["Cargo.toml"] == {"serde": "1.0.1"}
    found, answer = check_project(palace, project, wing="w", actor="t")
    assert found.values["Cargo.toml"] == {"serde": "1.0.1"}
    assert answer["changes_detected"]["removed_fields"] == ["package.json"]
    _, again = check_project(palace, project, wing="w", actor="t")
    assert again["triggered"] is False
