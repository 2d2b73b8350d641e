from __future__ import annotations

from pathlib import Path

import pytest

from castle.llm.base import JSON_ONLY, LlmError, UnansweredError
from castle.llm.codex_cli import CodexCli
from tests.llm.commands import FakeClaude


@pytest.fixture
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeClaude:
    return FakeClaude(tmp_path / "bin", monkeypatch, "codex")


def test_the_question_goes_through_standard_input_and_nothing_is_switched_on(codex: FakeClaude) -> None:
    codex.prints('{"a": 1}\n')
    asked = CodexCli()
    assert (asked.name, asked.model, asked.available()) == ("codex", "gpt-5.6-luna", None)
    assert asked.generate("be brief", "private: ü", json=True) == '{"a": 1}'
    noted = codex.noted
    assert noted["stdin"] == f"be brief\n\n{JSON_ONLY}\n\nprivate: ü"
    argv = noted["argv"]
    assert argv[:5] == ["exec", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only"]
    assert argv[5:7] == ["--model", "gpt-5.6-luna"]
    assert argv[-1] == "-"
    assert 'model_reasoning_effort="low"' in argv
    assert {"mcp_servers={}", "features.hooks=false", "features.memories=false", "notify=[]"} <= set(argv)
    assert "private" not in " ".join(argv)
    assert noted["files"] == []
    assert not Path(noted["cwd"]).exists()


def test_what_fails_says_why(codex: FakeClaude) -> None:
    codex.does("sys.stderr.write('not logged in'); sys.exit(3)")
    with pytest.raises(LlmError, match=r"codex failed \(exit code 3\): not logged in"):
        CodexCli().generate("s", "p")
    codex.prints(" ")
    with pytest.raises(LlmError, match="it said nothing"):
        CodexCli().generate("s", "p")


def test_it_is_given_so_long_and_no_longer(codex: FakeClaude) -> None:
    codex.does("sleep 30", "/bin/sh")
    with pytest.raises(UnansweredError, match="codex did not answer within 0.2 s"):
        CodexCli(timeout=0.2).generate("s", "p")


def test_without_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LlmError, match="codex is not on PATH"):
        CodexCli().generate("s", "p")
