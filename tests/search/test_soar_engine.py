"""The real Soar, in its process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from castle import Castle
from castle.search import soar_engine
from castle.search.candidates import Candidate
from castle.search.soar import Mindful, ReadyRules, SoarContext, SoarFacts, soar
from castle.search.soar_engine import (
    MIND_RULES,
    PACKAGED_RULES,
    Fields,
    SoarEngine,
    SoarMissing,
    SoarUnavailable,
    bindings,
    shared_engine,
)

pytest.importorskip("soar_sml")

NOW = 1_700_000_000_000_000
DAY = 24 * 3600 * 1_000_000
PATIENCE = 60.0
CONTEXT: Fields = [("project", "bees")]

TAG_ALL = """sp {tag*all
    (state <s> ^superstate nil ^io.input-link.memory <m>)
-->
    (<m> ^boost-tag TAG)
}
"""


@pytest.fixture
def engine() -> Iterator[SoarEngine]:
    """The packaged rules; patient, because a test says nothing about speed."""
    made = SoarEngine(answer_seconds=PATIENCE, start_seconds=PATIENCE)
    yield made
    made.close()


class Own:
    """A file of rules with the engine for it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine = SoarEngine(path, answer_seconds=PATIENCE, start_seconds=PATIENCE)
        self.age = 0

    def write(self, text: str) -> None:
        self.age += 1
        self.path.write_text(text, encoding="utf-8")
        os.utime(self.path, (self.age, self.age))

    def ask(self, *names: str) -> list[tuple[str, ...]]:
        return self.engine.ask(CONTEXT, [[("id", name)] for name in names])


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Own]:
    made = Own(tmp_path / "mine.soar")
    yield made
    made.engine.close()


def memory(name: str, **fields: str) -> Fields:
    return [("id", name), *((key.replace("_", "-"), value) for key, value in fields.items())]


def search(engine: SoarEngine, query: str, project: str, *facts: SoarFacts) -> dict[str, tuple[str, ...]]:
    candidates = [Candidate(fact.id, fact.id, score=fact.score) for fact in facts]
    hits = soar(candidates, {fact.id: fact for fact in facts}, SoarContext(project, query, NOW), engine)
    return {hit.id: hit.soar_tags for hit in hits}


def test_each_packaged_rule(engine: SoarEngine) -> None:
    old = NOW - 30 * DAY
    found = search(
        engine,
        "what did we decide about hives",
        "bees",
        SoarFacts("recent", "ants", "general", NOW - DAY, False, 0.5),
        SoarFacts("project", "bees", "general", old, False, 0.5),
        SoarFacts("entity", "ants", "general", old, True, 0.5),
        SoarFacts("type", "ants", "decisions", old, False, 0.5),
        SoarFacts("other-type", "ants", "problems", old, False, 0.5),
        SoarFacts("none", "ants", "general", None, False, 0.5),
        SoarFacts("week", "ants", "general", NOW - 7 * DAY, False, 0.5),
        SoarFacts("all", "bees", "decision", NOW, True, 0.5),
    )
    assert found == {
        "recent": ("recency-boost",),
        "project": ("same-project",),
        "entity": ("entity-match",),
        "type": ("type-match",),
        "other-type": (),
        "none": (),
        "week": (),
        "all": ("entity-match", "recency-boost", "same-project", "type-match"),
    }


def test_the_mind_adds_to_the_packaged_rules_only_where_it_holds_something(tmp_path: Path) -> None:
    def ranked(made: ReadyRules, ids: list[str]) -> dict[str, tuple[tuple[str, ...], float]]:
        facts = {id_: SoarFacts(id_, "ants", "general", NOW - 30 * DAY, False, 0.5) for id_ in ids}
        found = soar([Candidate(i, i, score=0.5) for i in ids], facts, SoarContext("x", "q", NOW), made)
        return {hit.id: (hit.soar_tags, round(hit.score, 4)) for hit in found}

    mind = SoarEngine(MIND_RULES, answer_seconds=PATIENCE, start_seconds=PATIENCE)
    assert not mind.own_rules
    with Castle(tmp_path / "palace", embedder="fake", clock=lambda: NOW) as castle:
        fresh = castle.memory_save("The hive is warm", "semantic", {"confidence": 0.6}).memory
        stale = castle.memory_save("The hive is cold", "semantic", {"confidence": 0.6}).memory
        castle.memory_forget(stale.id, reason="it is not", expire=True)
        way = castle.memory_save("Open the hive slowly", "procedural").memory
        pinned = castle.memory_save("We bought a hive").memory
        castle.memory_pin(pinned.id)
        plain = castle.memory_save("We painted a hive").memory
        ids = [memory.drawer_ids[0] for memory in (fresh, stale, way, pinned, plain)]
        found = ranked(Mindful(mind, castle._palace()), ids)
    assert [found[id_] for id_ in ids] == [
        (("fresh-fact",), 0.55),
        (("stale-fact",), 0.35),
        (("procedure-hit",), 0.55),
        (("pinned",), 0.6),
        ((), 0.5),
    ]
    assert ranked(mind, ids) == dict.fromkeys(ids, ((), 0.5))
    mind.close()


def test_the_setting_lets_a_search_go_by_the_mind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, rules, tagged in (("false", None, False), ("true", MIND_RULES, True)):
        patient = SoarEngine(rules, answer_seconds=PATIENCE, start_seconds=PATIENCE)
        monkeypatch.setitem(soar_engine._engines, rules, patient)
        monkeypatch.setenv("CASTLE_SOAR_MIND", value)
        with Castle(tmp_path / "palace", embedder="fake") as castle:
            castle.memory_pin(castle.memory_save("We bought a hive").memory.id)
            (hit,) = castle.search("hive", mode="boosted").hits
            assert ("pinned" in hit.soar_tags) == tagged
        patient.close()


def test_without_an_intent_no_type_matches(engine: SoarEngine) -> None:
    found = search(engine, "hives", "bees", SoarFacts("a", "ants", "decisions", None, False, 0.5))
    assert found == {"a": ()}


def test_chunks_of_one_file_do_not_share_tags(engine: SoarEngine) -> None:
    found = search(
        engine,
        "hives",
        "bees",
        SoarFacts("chunk1", "ants", "general", NOW, True, 0.5),
        SoarFacts("chunk2", "ants", "general", None, False, 0.5),
    )
    assert found == {"chunk1": ("entity-match", "recency-boost"), "chunk2": ()}


def test_nothing_is_left_of_the_last_query(engine: SoarEngine) -> None:
    assert engine.ask(CONTEXT, [memory("a", project="bees")]) == [("same-project",)]
    assert engine.ask([("project", "ants")], [memory("a", project="bees")]) == [()]
    assert engine.ask(CONTEXT, [memory("b", project="ants"), memory("a")]) == [(), ()]
    assert engine.ask([], []) == []


STRANGE = [
    "a|b",
    "two words",
    "\"quoted\" and 'single'",
    "line\nbreak\ttab\rreturn",
    "<angle> (round) {brace} ^up @at $d",
    "back\\slash",
    "日本語 עברית 😀 e\u0301",
    "\x01\x1f\x7f\x85\u2028",
    "nul\x00inside",
    "lone \ud800 surrogate",
    "",
    " ",
    "S1",
    "42",
    "-7.5e3",
    "nil",
    "x" * 10_000,
]


def test_any_text_is_a_safe_id_and_wing(engine: SoarEngine) -> None:
    memories = [memory(text, project=text) for text in STRANGE]
    for index, text in enumerate(STRANGE):
        tags = engine.ask([("project", text)], memories)
        assert [number for number, given in enumerate(tags) if given] == [index]


def test_numbers_reach_the_rules_as_numbers(own: Own) -> None:
    own.write(
        """sp {old (state <s> ^superstate nil ^io.input-link.memory <m>)
            (<m> ^age-seconds > 4611686018427387903 ^score < 0.5) --> (<m> ^boost-tag old)}"""
    )
    memories: list[Fields] = [
        [("id", "a"), ("age-seconds", 2**62), ("score", 0.25)],
        [("id", "b"), ("age-seconds", 2**62 - 1), ("score", 0.25)],
        [("id", "c"), ("age-seconds", 2**62), ("score", 0.75)],
    ]
    assert own.engine.ask(CONTEXT, memories) == [("old",), (), ()]


def rss(pid: int | None) -> int:
    """Kilobytes of memory of a process."""
    done = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.parametrize("searches", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_searches_stay_right_and_need_no_more_memory(engine: SoarEngine, searches: int) -> None:
    """Ids are new in every search, as they are in a palace."""

    def check(turn: int) -> None:
        memories = [
            memory(
                f"{turn}-{number}",
                project="bees" if (turn + number) % 3 == 0 else "ants",
                entity_match="true",
            )
            for number in range(20)
        ]
        wanted = [
            ("entity-match", "same-project") if (turn + number) % 3 == 0 else ("entity-match",)
            for number in range(20)
        ]
        assert engine.ask(CONTEXT, memories) == wanted

    for turn in range(50):
        check(turn)
    before = rss(engine.pid)
    pid = engine.pid
    for turn in range(50, 50 + searches):
        check(turn)
    assert engine.pid == pid
    assert rss(engine.pid) < before + 1500


def test_threads_get_their_own_answers(engine: SoarEngine) -> None:
    wrong: list[object] = []

    def work(name: str) -> None:
        for turn in range(40):
            memories = [memory(f"{name}{turn}", project=name), memory(f"other{turn}", project="other")]
            tags = engine.ask([("project", name)], memories)
            if tags != [("same-project",), ()]:
                wrong.append((name, turn, tags))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("bees", "ants", "wasps")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_nothing_listens(engine: SoarEngine) -> None:
    engine.ask(CONTEXT, [memory("a")])
    descriptors = Path(f"/proc/{engine.pid}/fd")
    if descriptors.exists():
        assert [link for link in descriptors.iterdir() if "socket" in str(link.readlink())] == []
    code = (
        "import sys, pathlib, soar_sml; from castle.search.soar_kernel import RuleKernel;"
        "kernel = RuleKernel(soar_sml, pathlib.Path(sys.argv[1]));"
        "port = kernel._kernel.GetListenerPort(); kernel.close(); print(port)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(PACKAGED_RULES)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"


LOOP = """sp {loop*start (state <s> ^superstate nil) --> (<s> ^n 1)}
sp {loop*on (state <s> ^superstate nil ^n <n>) --> (<s> ^n (+ <n> 1))}
"""
JOIN = """sp {join (state <s> ^superstate nil ^io.input-link <il>)
    (<il> ^memory <a> ^memory <b> ^memory <c> ^memory <d> ^memory <e> ^memory <f>) --> (<a> ^near <f>)}
"""


@pytest.mark.parametrize("endless", [LOOP, JOIN])
def test_endless_rules_time_out_and_the_next_search_works(own: Own, endless: str) -> None:
    own.write(TAG_ALL)
    own.ask("a")
    own.engine._answer_seconds = 0.2
    own.write(endless)
    for _ in range(2):
        with pytest.raises(SoarUnavailable, match="^timeout$"):
            own.engine.ask(CONTEXT, [memory(str(number)) for number in range(50)])
    assert own.engine.pid is None
    own.engine._answer_seconds = PATIENCE
    own.write(TAG_ALL)
    assert own.ask("a") == [("TAG",)]


def test_a_start_that_takes_long_goes_on_in_the_background(tmp_path: Path) -> None:
    slow = SoarEngine(answer_seconds=PATIENCE, start_seconds=0.0)
    with pytest.raises(SoarUnavailable, match="^timeout$"):
        slow.ask(CONTEXT, [memory("a")])
    pid = slow.pid
    assert slow.ask(CONTEXT, [memory("a", project="bees")]) == [("same-project",)]
    assert slow.pid == pid
    slow.close()


def test_prepare_starts_without_waiting(engine: SoarEngine) -> None:
    engine.prepare()
    pid = engine.pid
    assert pid is not None
    engine.ask(CONTEXT, [memory("a")])
    assert engine.pid == pid


def test_rules_with_operators_start_afresh_in_every_query(own: Own) -> None:
    own.write(
        """sp {propose (state <s> ^superstate nil -^done yes)
            --> (<s> ^operator <o> +) (<o> ^name mark)}
        sp {apply (state <s> ^operator.name mark ^io.input-link.memory <m>)
            --> (<s> ^done yes) (<m> ^boost-tag kept)}"""
    )
    assert [own.ask("a"), own.ask("b", "c")] == [[("kept",)], [("kept",), ("kept",)]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sp {broken (state <s> ^x", "unmatched opening brace"),
        (TAG_ALL + "frobnicate 3\n", "No such command: frobnicate"),
        ("sp {bad*rhs (state <s> ^x <q>) --> (<u> ^y 2)}", "ungrounded"),
        ("source nowhere.soar\n", "nowhere.soar"),
    ],
)
def test_broken_rules_are_a_reason_until_they_are_mended(own: Own, text: str, says: str) -> None:
    own.write(text)
    for _ in range(2):
        with pytest.raises(SoarUnavailable) as caught:
            own.ask("a")
        assert says in str(caught.value)
        assert str(own.path) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert own.engine.pid is None
    own.write(TAG_ALL)
    assert own.ask("a") == [("TAG",)]


def test_missing_rules_are_a_reason(own: Own) -> None:
    with pytest.raises(SoarUnavailable, match="cannot be read"):
        own.ask("a")
    own.write(TAG_ALL)
    assert own.ask("a") == [("TAG",)]


def test_changed_rules_are_loaded_anew(own: Own) -> None:
    own.write(TAG_ALL)
    assert own.ask("a") == [("TAG",)]
    own.write(TAG_ALL.replace("TAG", "NEW"))
    assert own.ask("a") == [("NEW",)]


def test_rules_may_lie_anywhere_and_source_others(tmp_path: Path) -> None:
    directory = tmp_path / "my {rules' é"
    directory.mkdir()
    (directory / "other.soar").write_text(TAG_ALL, encoding="utf-8")
    rules = directory / "my rules é.soar"
    rules.write_text("source other.soar\n", encoding="utf-8")
    made = SoarEngine(rules, answer_seconds=PATIENCE, start_seconds=PATIENCE)
    assert made.own_rules
    assert made.ask(CONTEXT, [memory("a")]) == [("TAG",)]
    made.close()


def test_rules_that_halt_do_no_harm(own: Own) -> None:
    own.write(TAG_ALL + "sp {stop (state <s> ^superstate nil ^io.input-link.memory.id b) --> (halt)}")
    assert [own.ask("a"), own.ask("b"), own.ask("c")] == [[("TAG",)], [()], [("TAG",)]]


def test_other_output_of_rules_is_ignored(own: Own) -> None:
    own.write(
        TAG_ALL + "sp {out (state <s> ^superstate nil ^io.output-link <o>) --> (<o> ^0 x ^a <b>) (<b> ^c d)}"
    )
    assert own.ask("0", "a") == [("TAG",), ("TAG",)]


def test_rules_that_write_cannot_disturb_the_answers(own: Own) -> None:
    own.write("echo loaded\n" + TAG_ALL + "sp {say (state <s> ^superstate nil) --> (write |{}|)}\n")
    assert own.ask("a") == [("TAG",)]


def test_a_dead_process_is_replaced(engine: SoarEngine) -> None:
    engine.ask(CONTEXT, [memory("a")])
    assert engine._child is not None
    engine._child.process.kill()
    engine._child.process.wait()
    assert engine.ask(CONTEXT, [memory("a", project="bees")]) == [("same-project",)]


def test_closing_ends_the_process_and_may_be_repeated(engine: SoarEngine) -> None:
    engine.ask(CONTEXT, [memory("a")])
    child = engine._child
    assert child is not None
    engine.close()
    engine.close()
    assert child.process.returncode is not None
    assert engine.pid is None
    assert engine.ask(CONTEXT, [memory("a", project="bees")]) == [("same-project",)]


def test_the_interpreter_ends_with_a_running_engine(tmp_path: Path) -> None:
    """Also while a thread waits for rules that never answer; no process is left."""
    rules = tmp_path / "loop.soar"
    rules.write_text(LOOP, encoding="utf-8")
    code = """
import pathlib, sys, threading, time
from castle.search.soar_engine import shared_engine
good, bad = shared_engine(), shared_engine(pathlib.Path(sys.argv[1]))
bad._answer_seconds = 600
good._answer_seconds = good._start_seconds = 60
print(good.ask([], [[("id", "a")]]), good.pid)
threading.Thread(target=bad.ask, args=([], [[("id", "a")]]), daemon=True).start()
while bad._child is None or not bad._child.ready:
    time.sleep(0.01)
print(bad.pid)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(rules)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("[()] ")
    for pid in (first.split()[-1], second):
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


def test_the_process_ends_when_its_owner_is_killed() -> None:
    code = """
import os, signal
from castle.search.soar_engine import shared_engine
engine = shared_engine()
engine._start_seconds = 60
engine.prepare()
print(engine.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    pid = int(done.stdout)
    for _ in range(6000):
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        if not state.stdout.strip() or state.stdout.startswith("Z"):
            break
        threading.Event().wait(0.01)
    else:
        pytest.fail("the process still runs")


def test_an_engine_is_shared_by_rules(tmp_path: Path) -> None:
    assert shared_engine() is shared_engine(None)
    assert shared_engine(tmp_path / "a.soar") is not shared_engine(tmp_path / "b.soar")
    assert not shared_engine().own_rules
    soar_engine.close_engines()


def test_bindings_that_a_user_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: SoarEngine
) -> None:
    shim = tmp_path / "Python_sml_ClientInterface.py"
    shim.write_text("from soar_sml import *\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "soar_sml", None)
    assert bindings() == "Python_sml_ClientInterface"
    assert engine.ask(CONTEXT, [memory("a", project="bees")]) == [("same-project",)]


def test_bindings_that_do_not_load_are_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: SoarEngine
) -> None:
    (tmp_path / "Python_sml_ClientInterface.py").write_text("import no_such_library\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "soar_sml", None)
    with pytest.raises(SoarUnavailable, match="no_such_library"):
        engine.ask(CONTEXT, [memory("a")])


def test_without_bindings_soar_is_missing(monkeypatch: pytest.MonkeyPatch, engine: SoarEngine) -> None:
    monkeypatch.setitem(sys.modules, "soar_sml", None)
    monkeypatch.setitem(sys.modules, "Python_sml_ClientInterface", None)
    with pytest.raises(SoarMissing, match="pip install"):
        engine.ask(CONTEXT, [memory("a")])
    assert engine.pid is None


def test_soar_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, engine: SoarEngine) -> None:
    monkeypatch.setenv("CASTLE_SML_DISABLED", "1")
    with pytest.raises(SoarMissing, match="CASTLE_SML_DISABLED"):
        engine.prepare()
    monkeypatch.setenv("CASTLE_SML_DISABLED", "0")
    engine.prepare()
    assert engine.pid is not None
