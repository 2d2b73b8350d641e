"""Secrets stand in the ledger and nowhere else: every command, tool, hook, prompt, log line and file is read.

A command or tool that is not in the tables here fails a test: whoever adds one says how it is to be called.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
import typer.main
from mcp.client import Client

from castle import Castle
from castle.cli import main
from castle.cli.app import app
from castle.llm.waiting import PROBES
from castle.mcp.server import build
from castle.mcp.tools import Tools
from castle.sue.method import Operator, Result
from castle.text import secret_rules
from castle.text.secrets import find_secrets
from tests.hooks.conftest import payload
from tests.llm import servers
from tests.mind.test_importing import SCHEMA, put
from tests.mine.test_convos import line
from tests.planted import Planted
from tests.sue.scripted import said

PLACES = (
    "file heading readme question answer tool thinking title diary day note changed again late given split "
    "mind"
).split()

EXEMPT = {
    "reveal": "shows a secret, to a person at a terminal only; see tests/cli/test_reveal.py",
    "serve": "gives the tools below over HTTP, until it is stopped",
    "hook run": "what castle-hook does, which is run below",
    "check-env": "shows names and versions of what is installed; see tests/mind/test_environment.py",
    "memory plot": "draws pictures; see tests/mind/test_plots.py",
    "memory consolidate": "shows numbers and ids; called as a tool below",
    "memory reflect": "asks a model; called as a tool below",
    "memory replay": "asks a model; called as a tool below",
    "memory pool": "shows what a model made; called as a tool below",
    "memory match": "called as a tool below",
}
"""Commands that are not called here, and why."""

ASK_A_MODEL = (
    "memory_consolidate",
    "memory_reflect",
    "memory_replay",
    "memory_hypothesis_feedback",
    "memory_creative_pool",
)
"""Tools that may say that the model here gives no answer that they can use."""

Arguments = Sequence[str]

BEFORE: tuple[Arguments, ...] = (
    ("init", "{project}", "--yes"),
    ("mine", "{project}"),
    ("mine", "{project}", "--dry-run", "--json"),
    ("sync", "{project}", "--json"),
    ("sweep", "{transcript}"),
    ("sweep", "--json"),
    ("diary", "write", "{diary}", "--agent", "keeper", "--topic", "harbour"),
    ("diary", "ingest", "{days}", "--json"),
    ("add", "{note}", "--wing", "harbour", "--room", "notes", "--json"),
    ("split", "{split}", "--output-dir", "{elsewhere}", "--json"),
    ("kg", "add", "Ada", "keeps", "the lighthouse", "--drawer", "{drawer}"),
    ("kg", "add", "Ada", "keeps", "the boat", "--json"),
    ("kg", "add", "Ada", "knows", "{given}"),
    ("kg", "add", "Ada", "keeps", "the boat", "--source", "{given}"),
    ("kg", "supersede", "Ada", "keeps", "the boat", "{given}"),
    ("entities", "add", "Ada", "--kind", "person", "--alias", "Countess", "--json"),
    ("entities", "add", "{given}", "--kind", "person"),
    ("entities", "alias", "Ada", "{given}"),
    ("entities", "relink", "--json"),
    ("tunnels", "create", "harbour/notes", "keeper/diary", "--label", "{given}"),
    ("tunnels", "create", "harbour/notes", "{diary_wing}/diary", "--label", "boats", "--json"),
    ("compress", "--json"),
    ("pin", "{drawer}", "--json"),
    ("repair", "--json"),
    ("repair", "--backfill-novelty", "--json"),
    ("reindex", "--yes", "--json"),
    ("backup", "{backup}", "--json"),
    ("export", "{markdown}", "--history", "--json"),
    ("export", "{jsonl}", "--format", "jsonl", "--json"),
    ("import", "{jsonl}", "--json"),
    ("config", "set", "llm_api_key", "{given}"),
    ("connect", "codex", "--json"),
    ("disconnect", "codex", "--json"),
    ("sue", "review", "--drawer", "{drawer}", "--decision", "{short}", "--wait", "--json"),
    ("wing", "rename", "diary", "weeks", "--json"),
    ("update", "{note_id}", "{changed}", "--expected-sha256", "{note_sha}", "--json"),
    ("memory", "save", "{mind}", "--type", "working", "--session", "s9", "--json"),
    ("memory", "save", "{mind}", "--tag", "{token}", "--option", "{option}", "--json"),
    ("memory", "save", "{mind}", "--type", "semantic", "--confidence", "0.7", "--json"),
    ("memory", "save", "{mind}", "--type", "procedural", "--trigger", "{token}", "--json"),
    ("memory", "seed", "{seed}", "--json"),
    ("memory", "import-cellmem", "{cellmem}", "--json"),
    ("memory", "associate", "{memory_id}", "{note_id}", "--json"),
    ("memory", "outcome", "{memory_id}", "--worked", "--note", "{token}", "--json"),
    ("memory", "pin", "{memory_id}", "--json"),
    ("memory", "pin", "{memory_id}", "--off", "--json"),
    ("memory", "env", "{environment}", "--json"),
    ("memory", "session-end", "s9", "--json"),
    ("memory", "export", "{mind_export}", "--json"),
    ("memory", "import", "{mind_export}", "--json"),
)
"""Commands that change something, in order."""

READING: tuple[Arguments, ...] = (
    ("check",),
    ("check-duplicate", "{note}"),
    ("check-duplicate", "The lighthouse keeps watch over the harbour."),
    ("config", "get", "llm_api_key"),
    ("config", "show"),
    ("diary", "read", "--agent", "keeper"),
    ("doctor",),
    ("entities", "list"),
    ("get", "{drawer}", "--context", "20"),
    ("get", "{note_id}"),
    ("get", "{drawer}", "--source"),
    ("get", "s1", "--session"),
    ("get", "u0", "--message", "--in", "s1"),
    ("info-score", "{given}"),
    ("info-score", "--drawer", "{drawer}"),
    ("eval", "--probes", "20", "--json"),
    ("eval", "--history"),
    ("instructions", "help"),
    ("kg", "query", "Ada"),
    ("kg", "stats"),
    ("kg", "timeline"),
    ("list", "-n", "500", "--history"),
    ("list", "-n", "500", "--kind", "tool", "--kind", "thinking", "--kind", "injected"),
    ("list", "--sources"),
    ("mcp",),
    ("mcp", "--list-tools"),
    ("memory", "recall", "lighthouse harbour", "-n", "50", "--cold", "--expired"),
    ("memory", "get", "{memory_id}"),
    ("memory", "status"),
    ("memory", "verify", "--env", "{environment}", "--dry-run"),
    ("memory", "cold"),
    ("memory", "prefs"),
    ("pins",),
    ("prune-suggest", "--threshold", "1"),
    ("recall", "-n", "100"),
    ("receipts",),
    ("repair-status",),
    ("search", "lighthouse harbour", "-n", "50"),
    ("search", "lighthouse harbour", "-n", "50", "--explain"),
    ("search", "who keeps the lighthouse", "-n", "20", "--by", "session", "--history"),
    ("search", "lighthouse", "--kind", "tool", "--kind", "thinking", "-n", "50"),
    ("search", "{short}", "-n", "20"),
    ("search", "Use there", "-n", "50", "--mode", "fast"),
    ("sessions",),
    ("share", "--with", "claude"),
    ("share",),
    ("status",),
    ("sue", "report", "{sue_id}"),
    ("sue", "status"),
    ("sue", "status", "{sue_id}"),
    ("tunnels", "find"),
    ("tunnels", "follow", "harbour/notes"),
    ("tunnels", "list"),
    ("tunnels", "stats"),
    ("tunnels", "traverse", "notes"),
    ("understand", "{file}"),
    ("verify",),
    ("wake-up",),
    ("wake-up", "--wing", "harbour"),
    ("why", "lighthouse", "--drawer", "{drawer}"),
)
"""Commands that show something; each is called with ``--json``, too."""

AFTER: tuple[Arguments, ...] = (
    ("memory", "forget", "{memory_id}", "--reason", "a test", "--json"),
    ("memory", "cold", "lighthouse"),
    ("memory", "restore", "{memory_id}", "--json"),
    ("config", "unset", "llm_api_key"),
    ("tunnels", "create", "harbour/notes", "{diary_wing}/diary", "--json"),
    ("tunnels", "delete", "{tunnel_id}", "--json"),
    ("kg", "invalidate", "Ada", "keeps", "the lighthouse", "--json"),
    ("kg", "retract", "Ada", "keeps", "the boat"),
    ("entities", "forget", "Ada", "--json"),
    ("unpin", "{drawer}", "--json"),
    ("forget", "{drawer}", "--json"),
    ("restore", "{drawer}", "--json"),
    ("purge", "{note_id}", "--reason", "a test", "--yes", "--json"),
)

TOOLS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "search": (
        {"query": "lighthouse harbour", "limit": 50},
        {"query": "lighthouse", "kinds": ["tool", "thinking"], "history": True},
        {"query": "{short}", "by": "session"},
    ),
    "get_drawer": ({"drawer_id": "{drawer}", "context": 5}, {"drawer_id": "{note_id}"}),
    "list_drawers": ({"history": True, "limit": 100}, {"kinds": ["tool", "thinking"], "limit": 100}),
    "add_drawer": ({"wing": "harbour", "room": "notes", "content": "{late}"},),
    "check_duplicate": ({"content": "{note}"}, {"content": "The lighthouse keeps watch over the harbour."}),
    "update_drawer": ({"drawer_id": "{note_id}", "content": "{again}", "expected_sha256": "{note_sha}"},),
    "delete_drawer": ({"drawer_id": "{note_id}"},),
    "restore_drawer": ({"drawer_id": "{note_id}"},),
    "wake_up": ({}, {"wing": "harbour"}),
    "pin_drawer": ({"drawer_id": "{drawer}", "pinned": True},),
    "status": ({},),
    "list_wings": ({},),
    "list_rooms": ({},),
    "list_sessions": ({},),
    "get_taxonomy": ({},),
    "get_aaak_spec": ({},),
    "reconnect": ({},),
    "memories_filed_away": ({},),
    "hook_settings": ({},),
    "kg_query": ({"entity": "Ada"},),
    "kg_add": (
        {"subject": "Ada", "predicate": "rows", "object": "a boat", "source_drawer_id": "{drawer}"},
        {"subject": "Ada", "predicate": "knows", "object": "{given}"},
        {"subject": "Ada", "predicate": "rows", "object": "a ship", "source_file": "{given}"},
    ),
    "kg_invalidate": ({"subject": "Ada", "predicate": "rows", "object": "a boat"},),
    "kg_timeline": ({},),
    "kg_stats": ({},),
    "diary_write": ({"agent_name": "keeper", "entry": "{diary}", "topic": "again"},),
    "diary_read": ({"agent_name": "keeper"},),
    "traverse": ({"start_room": "notes"},),
    "find_tunnels": ({},),
    "graph_stats": ({},),
    "create_tunnel": (
        {
            "source_wing": "harbour",
            "source_room": "notes",
            "target_wing": "{diary_wing}",
            "target_room": "diary",
            "label": "{given}",
        },
        {
            "source_wing": "harbour",
            "source_room": "notes",
            "target_wing": "{diary_wing}",
            "target_room": "diary",
            "source_drawer_id": "{note_id}",
        },
    ),
    "list_tunnels": ({},),
    "follow_tunnels": ({"wing": "harbour", "room": "notes"},),
    "delete_tunnel": ({"tunnel_id": "{tunnel_id}"},),
    "info_score": ({"text": "{given}"},),
    "prune_suggest": ({"threshold": 1.0},),
    "sue_review": ({"drawer_ids": ["{drawer}", "{note_id}"], "decision": "{short}"},),
    "sue_status": ({}, {"run_id": "{sue_id}"}),
    "memory_save": (
        {"content": "{mind}", "options": {"tags": ["{token}"]}},
        {"content": "{mind}", "memory_type": "working"},
    ),
    "memory_recall": ({"query": "lighthouse harbour", "options": {"top_k": 50, "include_cold": True}},),
    "memory_status": ({},),
    "memory_get": ({"memory_id": "{memory_id}"},),
    "memory_associate": ({"source_id": "{memory_id}", "target_id": "{drawer}"},),
    "memory_forget": ({"memory_id": "{memory_id}", "reason": "{token}"},),
    "memory_cold": ({}, {"action": "search", "query": "lighthouse"}),
    "memory_pin": ({"memory_id": "{memory_id}", "pinned": False},),
    "memory_session_end": ({"session_id": "default"},),
    "memory_match_procedures": ({"context_text": "the lighthouse of the harbour"},),
    "memory_record_outcome": ({"procedure_id": "{memory_id}", "success": True, "note": "{token}"},),
    "memory_check_environment": ({"environment": {"lighthouse": "{token}"}},),
    "memory_verify": ({"environment": {"lighthouse": "{token}"}},),
    "memory_inject_preference": ({"preference_text": "{mind}"},),
    "memory_extract_preferences": ({},),
    "memory_get_preferences": ({}, {"context_text": "{token}"}),
    "memory_check_preference_conflicts": ({},),
    "memory_record_preference_feedback": ({"preference_id": "{preference_id}", "confirmed": True},),
    "memory_consolidate": ({},),
    "memory_reflect": ({"task_description": "{mind}", "dimensions": "all"},),
    "memory_replay": ({},),
    "memory_creative_pool": ({},),
    "memory_hypothesis_feedback": ({"hypothesis_id": "hyp_0000000000000000", "confirmed": True},),
}
"""Every tool with the arguments it is called with, in order."""


@dataclass
class Walk:
    """One palace with secrets of every kind planted everywhere, and all that it was asked and said."""

    home: Path
    planted: Mapping[str, Planted]
    words: dict[str, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.home / ".castle" / "palace"

    @property
    def needles(self) -> set[str]:
        return {needle for one in self.planted.values() for needle in one.needles}

    def filled(self, text: object) -> Any:
        """Replace {names} by what they stand for."""
        if isinstance(text, list):
            return [self.filled(part) for part in text]
        if isinstance(text, str) and text.startswith("{") and text.split("}")[0][1:] in self.words:
            name, _, rest = text[1:].partition("}")
            return self.words[name] + rest
        return text

    def run(self, *arguments: str) -> str:
        """Run a command in this process; keep and return what it printed."""
        out, err = io.StringIO(), io.StringIO()
        given = [self.filled(argument) for argument in arguments]
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as leaving:
            main(given)
        name = " ".join(arguments)
        self.codes[name] = int(leaving.value.code or 0)
        self.answers[f"castle {name}"] = out.getvalue() + err.getvalue()
        return out.getvalue()

    def leaks(self, said: Mapping[str, str]) -> dict[str, list[str]]:
        """Return who said a piece of a secret, and which kinds of which places."""
        found = {}
        for name, text in said.items():
            kinds = [
                f"{place}: {kind}"
                for place, one in self.planted.items()
                for kind, needles in one.by_kind().items()
                if any(needle in text for needle in needles)
            ]
            if kinds:
                found[name] = kinds
        return found


def transcript(planted: Mapping[str, Planted]) -> str:
    """A session in which everybody speaks of secrets."""
    question = planted["question"]
    # The secret that the question begins with is long: what quotes the question cuts it off.
    opening = f"{question.values['jwt']} is what the lighthouse needs.\n\n{question.prose()}"
    answer = [
        {"type": "thinking", "thinking": planted["thinking"].prose(), "signature": "x"},
        {"type": "text", "text": planted["answer"].prose()},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": planted["tool"].short()}},
    ]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": planted["tool"].prose()}]
    title = {"type": "custom-title", "customTitle": planted["title"].short(), "sessionId": "s1"}
    return "".join(
        [
            line(0, opening),
            line(1, answer, role="assistant"),  # type: ignore[arg-type]
            line(2, result),  # type: ignore[arg-type]
            line(3, "Is the lighthouse of the harbour lit?"),
            line(4, "It is, says the keeper.", role="assistant"),
            json.dumps(title) + "\n",
        ]
    )


def former(path: Path, said: str) -> None:
    """A database of the memory that the mind follows, with the same words everywhere."""
    with closing(sqlite3.connect(path)) as cx:
        cx.executescript(SCHEMA)
        put(cx, "episodic_memory", {"id": "e1", "content": said, "metadata_json": {"said": said}})
        put(cx, "semantic_memory", {"id": "f1", "content": said, "confidence": 0.5, "tags_json": [said]})
        put(cx, "creative_pool", {"id": "h1", "hypothesis_text": said, "status": "pending"})
        put(cx, "preference_candidates", {"id": "q1", "preference_text": said, "trigger_context": said})
        cx.commit()


def plant(home: Path, planted: Mapping[str, Planted]) -> dict[str, str]:
    """Write everything that is filed; return what the {names} of the tables stand for."""
    project, days, split = home / "harbour", home / "days", home / "split"
    for directory in (project, days, split, home / "elsewhere", home / "exports"):
        directory.mkdir(parents=True)
    heading = planted["heading"].short()
    (project / "notes.md").write_text(
        f"# {heading}\n\n{planted['file'].prose()}\n\n## Boats\n\nA boat.\n", "utf-8"
    )
    (project / "README.md").write_text(f"# Harbour\n\n{planted['readme'].prose()}\n", "utf-8")
    (project / "castle.yaml").write_text("wing: harbour\n", "utf-8")
    (days / "2026-05-01.md").write_text(planted["day"].prose(), "utf-8")
    said = home / "s1.jsonl"
    said.write_text(transcript(planted), "utf-8")
    spoken = planted["mind"].prose()
    seeds = [{"content": spoken, "source": spoken, "tags": [spoken]}]
    (home / "seed.json").write_text(json.dumps({"seed_knowledge": seeds}), "utf-8")
    (home / "environment.json").write_text(json.dumps({"lighthouse": spoken}), "utf-8")
    former(home / "cell_mem.db", spoken)
    sessions = "".join(f"Claude Code v2.1.{n}\n> {planted['split'].short()}\n\n" for n in range(3))
    (split / "mega.txt").write_text(sessions, "utf-8")
    return {
        "project": str(project),
        "file": str(project / "notes.md"),
        "days": str(days),
        "transcript": str(said),
        "split": str(split),
        "elsewhere": str(home / "elsewhere"),
        "backup": str(home / "copy.castle"),
        "markdown": str(home / "exports" / "markdown"),
        "jsonl": str(home / "exports" / "jsonl"),
        "diary": planted["diary"].prose(),
        "note": planted["note"].prose(),
        "changed": planted["changed"].prose(),
        "late": planted["late"].prose(),
        "again": planted["again"].prose(),
        "given": planted["given"].values["github_token"],
        "short": planted["question"].short(),
        "diary_wing": "wing_keeper",
        "mind": planted["mind"].prose(),
        "token": planted["mind"].values["github_token"],
        "option": f"metadata={json.dumps({'said': planted['mind'].prose()})}",
        "seed": str(home / "seed.json"),
        "cellmem": str(home / "cell_mem.db"),
        "environment": str(home / "environment.json"),
        "mind_export": str(home / "exports" / "mind.jsonl"),
    }


def walk_commands(walk: Walk) -> None:
    for arguments in BEFORE:
        if "{drawer}" in arguments and "drawer" not in walk.words:
            found = json.loads(walk.run("list", "-n", "500", "--json"))["drawers"]
            walk.words["drawer"] = next(d["id"] for d in found if d["sealed"] and d["kind"] == "file")
        printed = walk.run(*arguments)
        name = {"add": "note", "update": "note", "tunnels": "tunnel", "sue": "sue"}.get(arguments[0])
        if arguments[:2] == ("memory", "save"):
            name = "memory"
        if name and printed:
            told = json.loads(printed)
            walk.words[f"{name}_id"] = told["id"]
            walk.words["note_sha"] = told.get("sha256", walk.words.get("note_sha", ""))
    for arguments in READING:
        walk.run(*arguments)
        walk.run(*arguments, "--json")


def walk_tools(walk: Walk) -> None:
    async def call() -> None:
        async with Client(build(Tools(str(walk.root)), "all")) as client:
            walk.answers["mcp instructions"] = str(client.instructions)
            walk.answers["mcp tools"] = str(await client.list_tools())
            for name, calls in TOOLS.items():
                for number, given in enumerate(calls):
                    arguments = {key: walk.filled(value) for key, value in given.items()}
                    tool = name if name.startswith("memory_") else f"castle_{name}"
                    answer = await client.call_tool(tool, arguments)
                    walk.answers[f"{tool} {number}"] = answer.model_dump_json()
                    if name == "memory_inject_preference":
                        walk.words["preference_id"] = (answer.structured_content or {})["data"][
                            "preference_id"
                        ]

    anyio.run(call)


def walk_hooks(walk: Walk) -> None:
    """Begin a session, prompt, and stop, as a host does, and let the drainer file what came last."""
    said = Path(walk.words["transcript"])
    with said.open("a", encoding="utf-8") as more:
        more.write(line(9, Planted("late").prose()))
    env = {**os.environ, "CASTLE_PALACE_PATH": str(walk.root)}
    hook = [sys.executable, "-m", "castle.hooks", "--harness", "claude-code", "--palace", str(walk.root)]
    drainer = [sys.executable, "-m", "castle.hooks.drain", "--palace", str(walk.root)]
    for name in ("user-prompt-submit", "session-end", "session-start", "stop"):
        given = payload("claude-code", name, str(said), session_id="s1", cwd=walk.words["project"])
        if name == "user-prompt-submit":
            given["prompt"] = walk.words["short"]
        done = subprocess.run(
            [*hook, "--hook", name],
            input=json.dumps(given).encode(),
            capture_output=True,
            env=env,
            check=True,
        )
        walk.answers[f"castle-hook {name}"] = (done.stdout + done.stderr).decode()
        log = subprocess.run(drainer, capture_output=True, env=env, check=True)
        walk.answers[f"drainer after {name}"] = (log.stdout + log.stderr).decode()
    walk.answers["wakeup.json"] = (walk.root / "wakeup.json").read_text("utf-8")


def model_says(request: servers.Request) -> servers.Reply:
    """Answer the judge, and a review that the lines are silent."""
    reviewed = request.body is not None and isinstance(request.body.get("format"), dict)
    text = json.dumps(said(Operator.DEFINE, Result.UNKNOWN)) if reviewed else '{"ranking": []}'
    return servers.ollama(text)(request)


def walk_api(walk: Walk) -> None:
    with Castle(walk.root) as castle:
        for prompt in ("who keeps the lighthouse of the harbour?", walk.words["short"]):
            walk.answers[f"recall for a prompt {len(prompt)}"] = castle.recall_for_prompt(prompt)
        walk.answers["closets"] = "\n".join(closet.text for closet in castle.closets())
        walk.answers["diary"] = str(castle.diary_read("keeper"))
        while not all(review.settled for review in castle.sue_status()):  # type: ignore[union-attr]
            time.sleep(0.1)
        reports = [review.report for review in castle.sue_status()]  # type: ignore[union-attr]
        assert len(reports) == 2
        walk.answers["reports"] = "".join(Path(report).read_text("utf-8") for report in reports)


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """Everything, once: the palace filed, every command and tool called, hooks run, models asked."""
    home = tmp_path_factory.mktemp("home")
    planted = {place: Planted(place) for place in PLACES}
    records: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(f"{record.name} {record.getMessage()} {record.exc_info}")

    keep = Keep(logging.DEBUG)
    logger = logging.getLogger("castle")
    with pytest.MonkeyPatch.context() as patch, servers.serving(model_says) as model:
        patch.setenv("HOME", str(home))
        patch.chdir(home)
        patch.setenv("CASTLE_EMBEDDER_MODEL", "fake")
        patch.setenv("CASTLE_LLM_PROVIDER", "ollama")
        patch.setenv("CASTLE_LLM_MODEL", "m")
        patch.setenv("CASTLE_LLM_ENDPOINT", model.url)
        patch.setattr("castle.llm.ollama.PROBE_S", 30.0)
        patch.setattr("castle.doctor.agents.HOOK_SECONDS", 60.0)
        patch.setattr("castle.doctor.palace.CATCH_UP_SECONDS", 60.0)
        PROBES.clear()
        level = logger.level
        logger.setLevel(logging.DEBUG)
        logger.addHandler(keep)
        try:
            walk = Walk(home, planted, plant(home, planted))
            walk_commands(walk)
            walk_tools(walk)
            walk_api(walk)
            walk_hooks(walk)
            for arguments in AFTER:
                walk.run(*arguments)
        finally:
            logger.removeHandler(keep)
            logger.setLevel(level)
            PROBES.clear()
        walk.answers["log"] = "\n".join(records)
        for number, request in enumerate(model.requests):
            walk.answers[f"prompt {number}"] = json.dumps(request.body)
        yield walk


def names_of_commands() -> set[str]:
    def found(command: Any, path: tuple[str, ...]) -> Iterator[str]:
        for name, below in getattr(command, "commands", {}).items():
            if hasattr(below, "commands"):
                yield from found(below, (*path, name))
            else:
                yield " ".join((*path, name))

    return set(found(typer.main.get_command(app), ()))


def test_every_kind_of_secret_is_planted() -> None:
    one = Planted("anywhere")
    assert {token.kind for token in secret_rules.TOKENS} <= one.values.keys()
    assert {span.kind for span in find_secrets(one.prose(), b"")} == {*one.values, "private_key"}
    assert one.needles.isdisjoint(Planted("elsewhere").needles)


def test_every_command_and_every_tool_is_in_the_tables() -> None:
    known = names_of_commands()
    called = {
        next(name for name in (" ".join(a[:2]), a[0]) if name in known) for a in (*BEFORE, *READING, *AFTER)
    }
    assert called | EXEMPT.keys() == known
    assert called.isdisjoint(EXEMPT)
    tools = {method.__name__ for method, _ in Tools().all()}
    assert TOOLS.keys() == tools


def test_the_calls_do_what_they_are_meant_to(walked: Walk) -> None:
    """Nothing is proven by commands that fail; those that are given a secret to keep have to refuse it."""
    refused = {
        " ".join(a) for a in BEFORE if "{given}" in a and a[:2] != ("config", "set") and a[0] != "info-score"
    }
    failed = {name for name, code in walked.codes.items() if code not in (0, 3)}
    assert {name: walked.answers[f"castle {name}"] for name in failed - refused} == {}
    assert failed >= refused
    for name in ("get {drawer} --source", "list -n 500 --history", "search lighthouse harbour -n 50"):
        assert "«secret:" in walked.answers[f"castle {name}"], name
    assert "«secret:" in walked.answers["castle_search 0"]
    assert any("messages" in answer for name, answer in walked.answers.items() if name.startswith("prompt"))
    assert "castle-recall" in walked.answers["castle-hook session-start"]
    wrong = {name for name, answer in walked.answers.items() if '"is_error":true' in answer}
    wrong -= {name for name in wrong if name.split()[0] in ASK_A_MODEL}
    assert wrong == {"castle_kg_add 1", "castle_kg_add 2", "castle_create_tunnel 0"}


def test_no_answer_prompt_or_log_line_holds_a_secret(walked: Walk) -> None:
    assert walked.leaks(walked.answers) == {}


def test_exports_are_masked(walked: Walk) -> None:
    files = {
        str(file.relative_to(walked.home)): file.read_text("utf-8")
        for file in (walked.home / "exports").rglob("*")
        if file.is_file()
    }
    assert {Path(name).suffix for name in files} >= {".md", ".jsonl"}
    assert sum("«secret:" in text for text in files.values()) > 1
    assert walked.leaks(files) == {}


def test_only_the_ledger_holds_them_on_disk(walked: Walk) -> None:
    needles = [needle.encode() for needle in walked.needles]
    ledger, others = b"", {}
    for file in sorted((walked.home / ".castle").rglob("*")):
        if not file.is_file() or file.name == "castle.yaml":  # where the user keeps the key of a model
            continue
        data = file.read_bytes()
        if file.name.startswith("castle.db") or file.parent.name == "backups":  # copies of the ledger
            ledger += data
        elif found := [needle for needle in needles if needle in data]:
            others[str(file.relative_to(walked.home))] = found
    assert others == {}
    for place, one in walked.planted.items():
        if place not in ("given", "split", "note", "changed", "again"):  # never filed, or purged
            assert one.values["github_token"].encode() in ledger, place
    names = {file.name for file in walked.root.rglob("*")}
    assert {"tokens.db", "lexicon", "drawers.lance", "spool"} <= names
