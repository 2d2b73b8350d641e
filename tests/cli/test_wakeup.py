from __future__ import annotations

import json
from pathlib import Path

import pytest

from castle.wakeup import layers
from tests.cli.conftest import Run


@pytest.fixture
def mined(run: Run, project: Path) -> Run:
    assert run("mine", str(project)).code == 0
    return run


def id_of(run: Run, words: str) -> str:
    id_: str = json.loads(run("search", words, "--json").out)["hits"][0]["id"]
    return id_


def test_wake_up_has_a_header_a_rule_and_the_text(mined: Run, own_home: Path) -> None:
    (own_home / ".castle" / "identity.txt").write_text("I am Ann.\n", encoding="utf-8")
    found = mined("wake-up")
    header, rule, who, *rest = found.out.splitlines()
    assert header.startswith("Wake-up, all wings: ")
    assert header.endswith(" tokens")
    assert rule == "=" * 50
    assert who == "I am Ann."
    assert any("We chose GraphQL in May." in line for line in rest)
    assert found.code == 0
    answer = json.loads(mined("wake-up", "--wing", "myapp", "--json").out)
    assert set(answer) == {"text", "tokens", "wing", "drawers", "left_out", "degraded", "pending"}
    assert answer["wing"] == "myapp"
    assert str(answer["tokens"]) in mined("wake-up", "--wing", "myapp").out.splitlines()[0]
    assert len(answer["drawers"]) == 4
    other = mined("wake-up", "--wing", "other")
    assert "Nothing is filed in wing other" in other.out
    assert other.err == "there is no wing other; there are: myapp\n"


def test_scores_that_are_still_to_be_made_are_told_and_no_fault(
    mined: Run, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from castle.store.ledger import Ledger, set_value
    from castle.store.novelty_tables import META_KEY

    ledger = Ledger(own_home / ".castle" / "palace")
    with ledger.write() as cx:
        set_value(cx, META_KEY, "{}")
    ledger.close()
    with monkeypatch.context() as patch:
        patch.setattr(layers, "FEW", 1)
        patch.setattr(layers, "refresh", lambda palace, seconds: None)
        found = mined("wake-up")
    assert found.code == 0
    assert "castle repair --backfill-novelty" in found.err
    assert "novelty" not in found.out
    assert mined("wake-up").code == 0


def test_without_a_palace_it_fails_with_the_next_command(run: Run) -> None:
    found = run("wake-up")
    assert (found.code, found.out) == (1, "")
    assert "castle init" in found.err


def test_recall_lists_the_newest_first(mined: Run, project: Path) -> None:
    (project / "later.md").write_text("# Later\n\n" + "The gate is painted green. " * 20, encoding="utf-8")
    mined("mine", str(project))
    found = mined("recall", "-n", "2")
    assert "1-2 of " in found.err
    head, said = found.out.splitlines()[:2]
    assert f"{project}/later.md:1" in head
    assert said.startswith("written 20")
    assert "The gate is painted green." in said
    assert len(said.split(": ", 1)[1]) <= 300
    everything = json.loads(mined("recall", "--wing", "myapp", "--json").out)["drawers"]
    assert "later.md" in everything[0]["address"]["path"]
    room = everything[-1]["room"]
    page = json.loads(mined("recall", "--room", room, "--wing", "myapp", "-n", "99", "--json").out)
    assert page["drawers"] == [drawer for drawer in everything if drawer["room"] == room]
    assert page["total"] == len(page["drawers"])
    other = mined("recall", "--wing", "other")
    assert other.err == "there is no wing other; there are: myapp\n0-0 of 0\n"
    assert mined("recall", "-n", "0").code == 2


def test_pins_are_set_listed_and_taken_away(mined: Run, own_home: Path) -> None:
    id_ = id_of(mined, "harbour")
    assert mined("pin", id_[:8]).err == f"{id_} pinned\n"
    assert mined("pin", id_).err == f"{id_} was pinned already\n"
    assert "Pinned\n- myapp / " in mined("wake-up").out
    assert "Pinned" in json.loads((own_home / ".castle" / "palace" / "wakeup.json").read_bytes())["general"]
    assert id_ in mined("pins").out
    (one,) = json.loads(mined("pins", "--wing", "myapp", "--json").out)
    assert one["drawer"]["id"] == id_
    assert one["pinned_at"].endswith("+00:00")
    assert json.loads(mined("unpin", id_, "--json").out) == {"id": id_, "pinned": False, "changed": True}
    assert mined("unpin", id_).err == f"{id_} was not pinned\n"
    assert id_ not in mined("pins").out
    assert "Pinned" not in mined("wake-up").out
    assert mined("pin", "0123456789").code == 1


def test_a_look_at_a_drawer_counts_as_a_use(mined: Run, own_home: Path) -> None:
    from castle.store.ledger import Ledger
    from castle.store.use import most_used, uses_of

    id_ = id_of(mined, "harbour")
    for _ in range(2):
        mined("get", id_, "--context", "1")
    ledger = Ledger(own_home / ".castle" / "palace")
    with ledger.read() as cx:
        (rid,) = most_used(cx, None, 9)
        assert uses_of(cx, [rid]) == {rid: 2}
    ledger.close()
