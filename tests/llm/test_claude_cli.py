from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from castle.llm.base import LlmError
from castle.llm.claude_cli import ClaudeCli
from tests.llm.commands import FakeClaude


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeClaude:
    return FakeClaude(tmp_path / "bin", monkeypatch)


def test_the_question_goes_through_standard_input(
    claude: FakeClaude, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    claude.says("hi")
    question = "private: ü, half a pair: \ud83d, $(touch x)\n" + "x" * 200_000
    assert ClaudeCli("haiku").available() is None
    assert ClaudeCli("haiku").generate("be brief", question, json=True) == "hi"
    noted = claude.noted
    assert noted["stdin"] == question.replace("\ud83d", "?")
    argv = noted["argv"]
    assert argv[:5] == ["-p", "--output-format", "json", "--model", "haiku"]
    assert "private" not in " ".join(argv)
    assert argv[argv.index("--append-system-prompt") + 1].startswith("be brief\n\n")
    assert noted["files"] == []
    assert not Path(noted["cwd"]).exists()
    assert "CLAUDECODE" not in noted["env"]


def test_neither_tools_nor_hooks_nor_servers_run(claude: FakeClaude) -> None:
    claude.says("hi")
    ClaudeCli().generate("s", "p")
    argv = claude.noted["argv"]
    settings = json.loads(argv[argv.index("--settings") + 1])
    assert settings["disableAllHooks"] is True
    assert {"Bash", "Edit", "Read", "WebFetch", "Write"} <= set(settings["permissions"]["deny"])
    assert argv[argv.index("--tools") + 1] == ""
    assert json.loads(argv[argv.index("--mcp-config") + 1]) == {"mcpServers": {}}
    assert {"--strict-mcp-config", "--no-session-persistence", "--disable-slash-commands"} <= set(argv)


def test_a_verbose_command_prints_a_list(claude: FakeClaude) -> None:
    claude.prints([{"type": "system"}, {"type": "result", "result": "hi", "is_error": False}])
    assert ClaudeCli().generate("s", "p") == "hi"


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("", r"exit code 0\): it said nothing"),
        ("not json", r"exit code 0\): not json"),
        ('{"result": "half', r"exit code 0\): {\"result\": \"half"),
        ({"type": "result", "result": None}, "exit code 0"),
        (
            {"type": "result", "result": "Invalid API key\nrun /login", "is_error": True},
            "Invalid API key run /login",
        ),
        ("[" * 100_000, "exit code 0"),
    ],
    ids=["nothing", "prose", "half", "null", "error", "deep"],
)
def test_every_bad_answer_is_one_line(claude: FakeClaude, printed: object, reason: str) -> None:
    claude.prints(printed)
    with pytest.raises(LlmError, match=reason) as caught:
        ClaudeCli().generate("s", "p")
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 300


def test_an_exit_code_and_what_was_said_about_it(claude: FakeClaude) -> None:
    claude.does("sys.stderr.write('noise ' * 100_000); sys.exit(3)")
    with pytest.raises(LlmError, match=r"claude failed \(exit code 3\): noise noise"):
        ClaudeCli().generate("s", "p")


def test_an_answer_without_end_is_refused(claude: FakeClaude) -> None:
    claude.does("sys.stdout.write('x' * 3_000_000)")
    with pytest.raises(LlmError, match="more than 1,000,000 bytes"):
        ClaudeCli().generate("s", "p")


def test_a_command_that_does_not_read_the_question_is_heard(claude: FakeClaude) -> None:
    claude.does("""printf '{"result": "hi"}'""", "/bin/sh")
    assert ClaudeCli().generate("s", "p" * 1_000_000) == "hi"


def test_the_deadline_ends_the_command_and_what_it_started(claude: FakeClaude) -> None:
    claude.does("sleep 100 & sleep 100", "/bin/sh")
    with pytest.raises(LlmError, match=r"did not answer within 1 s; .*llm_timeout"):
        ClaudeCli(timeout=1.0).generate("s", "p")
    # Its output stays open as long as any of them lives.
    for thread in threading.enumerate():
        if thread.name == "castle-llm":
            thread.join(50)
            assert not thread.is_alive()


def test_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ClaudeCli().available() == "the command claude is not on PATH; install Claude Code"
    with pytest.raises(LlmError, match="not on PATH"):
        ClaudeCli().generate("s", "p")


def test_a_command_that_cannot_run(claude: FakeClaude) -> None:
    claude.does("", "/no/such/interpreter")
    with pytest.raises(LlmError, match="cannot run .*claude: No such file"):
        ClaudeCli().generate("s", "p")
