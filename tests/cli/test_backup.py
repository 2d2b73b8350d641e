from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_backup_and_restore(run: Run, project: Path, tmp_path: Path) -> None:
    palace, copy = str(tmp_path / "palace"), str(tmp_path / "palace.zip")
    run("--palace", palace, "mine", str(project))
    made = run("--palace", palace, "backup", copy)
    assert made.code == 0
    assert made.out == f"{copy}\n"
    assert "indexes are not in it and are built again from the ledger" in made.err
    assert run("--palace", palace, "backup", copy).code == 1
    report = json.loads(run("--palace", palace, "backup", copy, "--force", "--json").out)
    assert report["drawers"] == 4
    refused = run("--palace", palace, "restore", "--from", copy)
    assert refused.code == 1
    assert "--yes" in refused.err
    other = str(tmp_path / "other")
    back = run("--palace", other, "restore", "--from", copy)
    assert (back.code, back.out) == (0, f"{other}\n")
    found = json.loads(run("--palace", other, "search", "harbour", "--json").out)
    assert "harbour is closed" in found["hits"][0]["text"]
    again = run("--palace", palace, "restore", "--from", copy, "--yes")
    assert again.code == 0
    assert "the palace that was there is now" in again.err
    assert json.loads(run("--palace", palace, "restore", "--from", copy, "--yes", "--json").out)["removed"]


def test_restore_of_one_thing_and_of_all_are_two(run: Run, project: Path, tmp_path: Path) -> None:
    palace, copy = str(tmp_path / "palace"), str(tmp_path / "palace.zip")
    run("--palace", palace, "mine", str(project))
    run("--palace", palace, "backup", copy)
    both = run("--palace", palace, "restore", "abcdef", "--from", copy, "--yes")
    assert both.code == 2
    assert "leave the id" in both.err
    missing = run("--palace", palace, "restore", "--from", str(tmp_path / "none.zip"), "--yes")
    assert missing.code == 2
    run("--palace", palace, "forget", "--wing", "myapp")
    assert run("--palace", palace, "restore", "--wing", "myapp").code == 0


def test_export_and_import(run: Run, project: Path, tmp_path: Path) -> None:
    palace, other = str(tmp_path / "palace"), str(tmp_path / "other")
    run("--palace", palace, "mine", str(project))
    tree = run("--palace", palace, "export", str(tmp_path / "tree"))
    assert (tree.code, tree.out) == (0, f"{tmp_path / 'tree'}\n")
    assert (tmp_path / "tree" / "myapp").is_dir()
    lines = run(
        "--palace", palace, "export", str(tmp_path / "lines"), "--format", "jsonl", "--include-secrets"
    )
    assert lines.code == 0
    assert "secrets are in it as they are" in lines.err
    came = run("--palace", other, "import", str(tmp_path / "lines"))
    assert came.code == 0
    assert "sources, new" in came.out
    again = json.loads(
        run("--palace", other, "import", str(tmp_path / "lines" / "palace.jsonl"), "--json").out
    )
    assert (again["sources"], again["known"]) == (0, 4)
    assert run("--palace", palace, "export", str(tmp_path / "tree")).code == 1
    assert run("--palace", palace, "export", str(tmp_path / "x"), "--include-secrets").code == 2
    assert run("--palace", palace, "export", str(tmp_path / "x"), "--wing", "none").code == 1
    missing = run("--palace", other, "import", str(tmp_path / "nothing"))
    assert missing.code == 2


def test_a_conflict_is_told_and_the_code_says_partial(run: Run, project: Path, tmp_path: Path) -> None:
    palace, other = str(tmp_path / "palace"), str(tmp_path / "other")
    run("--palace", palace, "mine", str(project))
    run("--palace", palace, "export", str(tmp_path / "lines"), "--format", "jsonl")
    (project / "notes.txt").write_text("Another beginning altogether.\n", encoding="utf-8")
    run("--palace", other, "mine", str(project))
    came = run("--palace", other, "import", str(tmp_path / "lines"))
    assert came.code == 3
    assert "left as it is here: source" in came.err


def test_repair_status_says_how_it_stands_and_exits_with_it(run: Run, project: Path, tmp_path: Path) -> None:
    palace = tmp_path / "palace"
    run("--palace", str(palace), "mine", str(project))
    well = run("--palace", str(palace), "repair-status")
    assert well.code == 0
    assert "words" in well.out
    (palace / "lexicon").rename(tmp_path / "taken")
    ill = run("--palace", str(palace), "repair-status", "--json")
    assert ill.code == 1
    (line,) = [line for line in json.loads(ill.out) if line["status"] == "failed"]
    assert line["check"] == "words"
    assert "castle repair" in line["detail"]
    assert "brought up to date: words" in run("--palace", str(palace), "repair").out
    assert "nothing was wrong" in run("--palace", str(palace), "repair").out
    assert run("--palace", str(palace), "repair-status").code == 0


def test_clean_locks_explains_itself_and_does_nothing(run: Run, project: Path, tmp_path: Path) -> None:
    palace = tmp_path / "palace"
    run("--palace", str(palace), "mine", str(project))
    before = sorted(palace.glob("*.lock"))
    assert before
    done = run("--palace", str(palace), "repair", "--clean-locks")
    assert done.code == 0
    assert "locks are the kernel's and end with their process" in done.err
    assert sorted(palace.glob("*.lock")) == before
    assert json.loads(run("--palace", str(palace), "repair", "--clean-locks", "--json").out) == {"cleaned": 0}
