"""The edges of the command line: streams, signals, odd arguments, and what reaches a terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from castle import Castle
from castle.cli.output import counted, say, say_json, say_table, visible
from castle.store.ledger import Ledger
from castle.text.names.locales import languages
from tests.cli.conftest import Run
from tests.cli.test_commands import castle_binary
from tests.mine.conftest import write
from tests.mine.test_convos import talk

HUGE = "9" * 40


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "CASTLE_EMBEDDER_MODEL": "fake", **more}


def shell(line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell in which $castle is the program."""
    env = environment(castle=castle_binary(), **more)
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], env=env, capture_output=True, text=True, check=False
    )


# Streams


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing(run: Run, project: Path, closed: str) -> None:
    run("mine", str(project))
    for command in ("status --json", "--help", "list"):
        done = shell(f"$castle {command} {closed}")
        assert done.returncode == 0, done.stderr
        assert "castle:" not in done.stderr
        assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_an_error_with_closed_streams_has_its_exit_code(project: Path) -> None:
    assert shell("$castle status 2>&-").returncode == 1
    assert shell("$castle mine /no/such >&- 2>&- <&-").returncode == 2
    assert shell(f"$castle init '{project}' <&-").returncode == 0
    assert (project / "castle.yaml").is_file()


@pytest.mark.parametrize("command", ["list --json --limit 1000", "--help", "config show", "status"])
def test_a_reader_that_has_enough_is_no_failure(run: Run, project: Path, command: str) -> None:
    write(project, {f"more/{number}.md": f"page {number} of the harbour\n" * 20 for number in range(120)})
    run("mine", str(project))
    done = shell(f"$castle {command} | head -c 1")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout) == 1


class Gone(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_a_table_for_nobody_is_a_broken_pipe_and_no_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    with pytest.raises(BrokenPipeError):
        say_table(("id",), [("a",)])


def test_json_is_json_whatever_the_terminal_can_show(run: Run, project: Path) -> None:
    text = "Čeština 😀 é \x1b[31m\x9b\n"
    (project / "unicode.md").write_text(text, encoding="utf-8")
    run("mine", str(project))
    for encoding in ("ascii", "latin-1", "cp1252", "utf-8"):
        done = shell("$castle get unicode.md --source --json", PYTHONIOENCODING=encoding)
        assert json.loads(done.stdout)[0]["text"] == text


# Arguments


@pytest.mark.parametrize(
    "arguments", [("--palace", "", "status"), ("status", "--palace="), ("--palace=", "list")]
)
def test_an_empty_palace_is_refused(run: Run, arguments: tuple[str, ...]) -> None:
    found = run(*arguments)
    assert (found.code, found.out) == (2, "")
    assert found.err == "castle: --palace is empty: name the directory of a palace\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("mine", ""),
        ("mine", "", "--mode", "convos"),
        ("init", "", "--yes"),
        ("sync", ""),
        ("sweep", ""),
        ("split", ""),
        ("diary", "ingest", ""),
        ("compress", "--config", ""),
    ],
)
def test_an_empty_path_is_not_the_directory_we_are_in(
    run: Run, project: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    before = sorted(project.iterdir())
    found = run(*arguments)
    assert (found.code, found.out) == (2, "")
    assert found.err == 'castle: the path is empty: name one ("." is the directory you are in)\n'
    assert sorted(project.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "x", "--limit", HUGE),
        ("list", "--limit", HUGE),
        ("list", "--offset", HUGE),
        ("list", "--sources", "--limit", HUGE),
        ("sessions", "--limit", HUGE),
        ("sessions", "--offset", "9223372036854775808"),
        ("get", "abcdef", "--context", HUGE),
        ("mine", ".", "--limit", HUGE),
        ("check", "--stale-after", HUGE),
        ("entities", "list", "--limit", HUGE),
        ("entities", "list", "--offset", HUGE),
        ("kg", "query", "Ada", "--limit", HUGE),
        ("kg", "query", "Ada", "--offset", HUGE),
        ("kg", "timeline", "--limit", HUGE),
        ("diary", "read", "--agent", "a", "--last", HUGE),
        ("list", "--limit", "-1"),
        ("list", "--limit", "1e3"),
    ],
)
def test_a_number_that_no_database_knows_is_a_usage_error(
    run: Run, project: Path, arguments: tuple[str, ...]
) -> None:
    run("mine", str(project))
    found = run(*arguments)
    assert (found.code, found.out) == (2, "")
    assert len(found.err.splitlines()) == 1


@pytest.mark.parametrize("number", ["1000000000", "999999999"])
def test_the_greatest_numbers_are_taken(run: Run, project: Path, number: str) -> None:
    run("mine", str(project))
    id_ = json.loads(run("list", "--json", "--limit", number).out)["drawers"][0]["id"]
    assert run("get", id_, "--context", number).code == 0
    for command in ("list", "sessions"):
        assert run(command, "--offset", number).code == 0
    assert run("check", "--stale-after", "1000000").code == 0
    assert run("mine", str(project), "--limit", number).code == 0


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "a\udcffb", "a\x7fb"])
@pytest.mark.parametrize("command", ["status", "mine", "search"])
def test_a_palace_path_that_terminals_act_on_is_refused_in_one_printable_line(
    run: Run, project: Path, tmp_path: Path, name: str, command: str
) -> None:
    more = {"status": [], "mine": [str(project)], "search": ["harbour"]}[command]
    found = run(command, *more, "--palace", str(tmp_path / name))
    assert found.code == 1
    assert found.err.endswith("\n")
    assert found.err[:-1].isprintable()
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("place", ["/proc/self/palace", "/dev/null", "/dev/full", "{project}/notes.txt"])
@pytest.mark.parametrize(
    "command",
    [("status",), ("list",), ("verify",), ("repair",), ("compress",), ("kg", "stats"), ("mine", "{project}")],
)
def test_a_palace_that_cannot_be_one_is_one_line(
    run: Run, project: Path, place: str, command: tuple[str, ...]
) -> None:
    where = place.format(project=project)
    found = run("--palace", where, *(part.format(project=project) for part in command))
    assert (found.code, found.out) == (1, "")
    assert len(found.err.splitlines()) == 1
    assert where in found.err
    assert "--debug" not in found.err


def test_a_palace_that_may_not_be_read_is_one_line(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_file", refuse)
    found = run("--palace", str(tmp_path / "closed"), "list")
    assert found.code == 1
    assert found.err == (
        f"castle: no palace can be opened at {tmp_path / 'closed'}: Permission denied; "
        "name another with --palace\n"
    )


@pytest.mark.parametrize("extra", [(), ("--mode", "projects"), ("--mode", "convos"), ("--dry-run",)])
def test_an_extraction_that_is_none_is_refused_in_every_mode(
    run: Run, project: Path, extra: tuple[str, ...]
) -> None:
    found = run("mine", str(project), "--extract", "nonsense", *extra)
    assert (found.code, found.out) == (2, "")
    assert found.err == "castle: extract 'nonsense' is neither exchange nor general\n"
    assert run("status").code == 1


def test_names_that_are_no_text_are_arguments_like_others(run: Run, project: Path) -> None:
    odd = "d\udcff"
    run("mine", str(project))
    missing = run("mine", odd)
    assert (missing.code, missing.out) == (2, "")
    assert missing.err == "castle: nothing to file at d\\xff: No such file or directory\n"
    for arguments in (
        ("search", odd),
        ("search", "x", "--wing", odd),
        ("search", "x", "--room", odd),
        ("search", "x", "--role", odd),
        ("search", "x", "--kind", odd),
        ("search", "x", "--source", odd),
        ("list", "--wing", odd),
        ("list", "--sources", "--wing", odd),
        ("sessions", "--wing", odd),
        ("get", odd),
        ("get", odd, "--source"),
        ("get", odd, "--session"),
        ("get", odd, "--message"),
        ("get", "x", "--message", "--in", odd),
        ("forget", "--wing", odd),
        ("forget", "--source", odd),
        ("restore", "--wing", odd),
        ("wing", "rename", odd, "b"),
        ("wing", "rename", "myapp", odd),
        ("kg", "query", odd),
        ("kg", "add", odd, odd, odd),
        ("entities", "add", odd, "--kind", "person"),
        ("diary", "write", odd, "--agent", odd),
        ("diary", "read", "--agent", odd),
        ("tunnels", "create", f"{odd}/a", f"b/{odd}"),
        ("tunnels", "find", odd),
        ("tunnels", "traverse", odd),
        ("mine", str(project), "--wing", odd),
        ("mine", str(project), "--agent", odd),
        ("compress", "--wing", odd),
        ("config", "set", "embedder_model", odd),
        ("split", odd),
        ("sync", odd),
    ):
        found = run(*arguments)
        assert found.code in (0, 1, 2, 3), arguments
        assert "--debug" not in found.err, (arguments, found.err)
        assert "\udcff" not in found.out + found.err, arguments


@pytest.mark.parametrize("mode", ["projects", "convos"])
@pytest.mark.parametrize("given", ["xx", "en,xx"])
def test_a_language_without_data_stops_a_mine_and_names_those_there_are(
    run: Run, project: Path, given: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("config", "set", "entity_languages", given).code == 0
    found = run("mine", str(project), "--mode", mode)
    assert (found.code, found.out) == (2, "")
    assert f"'xx', only for {', '.join(languages())}" in found.err
    assert len(found.err.splitlines()) == 1
    monkeypatch.setenv("CASTLE_ENTITY_LANGUAGES", "en-GB,pt")
    assert run("mine", str(project), "--mode", mode).code in (0, 3)


@pytest.mark.parametrize("what", ["pipe", "/dev/zero", "[", '{"a":', "missing", "directory"])
def test_a_dialect_that_is_no_small_file_is_one_line(run: Run, project: Path, what: str) -> None:
    run("mine", str(project))
    path = Path("/dev/zero") if what == "/dev/zero" else project.parent / "dialect.json"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "directory":
        path.mkdir()
    elif what[0] in "[{":
        path.write_text(what * 100_000, encoding="utf-8")
    found = run("compress", "--config", str(path))
    assert (found.code, found.out) == (2, "")
    assert len(found.err.splitlines()) == 1
    assert str(path) in found.err


# Damage


@pytest.mark.parametrize("mode", ["auto", "convos", "projects"])
def test_a_zip_that_is_cut_off_is_listed_and_the_exit_code_is_three(
    run: Run, own_home: Path, mode: str
) -> None:
    path = own_home / "talks" / "export.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("s1.jsonl", "".join(talk(40)))
    path.write_bytes(path.read_bytes()[:-30])
    for place in (path, path.parent):
        found = run("mine", str(place), "--mode", mode)
        assert found.code == 3
        assert "export.zip: " in found.err
        if mode == "convos":
            assert "a zip that is damaged or cut off" in found.err


def test_times_beyond_all_calendars_are_shown_as_numbers(run: Run, project: Path, own_home: Path) -> None:
    run("mine", str(project))
    far = 10**18
    ledger = Ledger(own_home / ".castle" / "palace")
    with ledger.write() as cx:
        cx.exec_driver_sql("UPDATE drawers SET authored_at = ?", (far,))
    ledger.close()
    shown = f"{far} microseconds after 1970-01-01T00:00:00+00:00"
    listed = json.loads(run("list", "--json").out)["drawers"]
    assert {drawer["authored_at"] for drawer in listed} == {shown}
    for command in (("get", listed[0]["id"]), ("search", "harbour"), ("list",), ("status",), ("verify",)):
        assert run(*command).code == 0


# What reaches a terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 日本", "plain ü 日本"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\rb\ac\bd", "a\\rb\\x07c\\x08d"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x7f\x9b2J", "\\x7f\\x9b2J"),
        ("\u202eabc\u2066\u2028", "\\u202eabc\\u2066\\u2028"),
        ("caf\udce9 \ud800", "caf\\xe9 \\ud800"),
    ],
)
def test_what_a_terminal_would_act_on_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_of_data_keep_their_layout(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\tb\nc\r\nd\re\x1b[2J")
    assert capsys.readouterr().out == "a\tb\nc\r\nd\\re\\x1b[2J\n"


@pytest.mark.parametrize(("count", "words"), [(0, "0 drawers"), (1, "1 drawer"), (2000, "2,000 drawers")])
def test_numbers_agree_with_their_nouns(count: int, words: str) -> None:
    assert counted(count, "drawer") == words


def test_of_long_paths_a_list_shows_the_end(run: Run, tmp_path: Path) -> None:
    place = tmp_path / ("a" * 100) / ("b" * 100) / "shop" / "notes.md"
    place.parent.mkdir(parents=True)
    place.write_text("The lantern is lit.\n", encoding="utf-8")
    run("mine", str(place.parent))
    for more in ((), ("--sources",)):
        shown = run("list", *more).out
        assert "bbb/shop/notes.md" in shown and "a" * 50 not in shown
        assert max(map(len, shown.splitlines())) < 160
        assert str(place.parent) in run("list", *more, "--json").out


class Terminal(io.StringIO):
    """A terminal to write to."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("term", ["dumb", "xterm"])
@pytest.mark.parametrize("width", [1, 20, 80, 300])
def test_ids_stay_whole_at_every_width(monkeypatch: pytest.MonkeyPatch, width: int, term: str) -> None:
    screen = Terminal()
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stdout", screen)
    id_, session = "0123456789abcdef01234567", "5c1f0c1e-2b7e-4b41-9a52-6f3f6c0f8a11"
    row = (id_, session, "日本" * 30, "/a/very/long/path" * 9, 12_345, "\x1b[31m\a")
    say_table(("id", "session", "wing", "source", "drawers", "title"), [row])
    say_table(("id", "text"), [])
    monkeypatch.undo()
    out = screen.getvalue()
    assert id_ in out
    assert session in out
    assert "12,345" in out
    assert "\a" not in out
    assert "\x1b[31m" not in out
    assert "日本" * 2 in out


def hostile(own_home: Path) -> Iterator[tuple[str, str]]:
    """File all kinds of names with control characters; yield commands that print them."""
    project = own_home / "projects" / "p\x1b[31mq"
    write(project, {"a\rb\x07.md": "plain\n", "c\x1b]0;title\x07.bin.md": "more plain\n"})
    (project / "d\x1b[2J.bin").write_bytes(b"\x7fELF" + bytes(range(256)) * 8)
    yield "mine", str(project)
    folder = own_home / "talks"
    folder.mkdir()
    lines = [line.replace('"s1"', '"s\\u001b[31m1"') for line in talk(4)]
    title = {"type": "custom-title", "customTitle": "t\x1b[31m", "sessionId": "s\x1b[31m1"}
    (folder / "s1.jsonl").write_text("".join(lines) + json.dumps(title) + "\n{\n", encoding="utf-8")
    yield "mine", str(folder)


def test_no_control_character_of_a_name_reaches_the_terminal(run: Run, own_home: Path) -> None:
    outcomes = [run(*command) for command in hostile(own_home)]
    for command in (
        ("tunnels", "create", "a/b", "c/d", "--label", "l\x1b[31m\rx"),
        ("tunnels", "list"),
        ("tunnels", "follow", "a/b"),
        ("kg", "add", "Ada", "knows", "B\x1b[31mob"),
        ("kg", "query", "Ada"),
        ("kg", "timeline"),
        ("entities", "add", "Ada\x1b[31m", "--kind", "person"),
        ("entities", "list"),
        ("diary", "write", "a day", "--agent", "agent\x07", "--topic", "t\x1b[0m"),
        ("diary", "read", "--agent", "agent\x07"),
        ("status",),
        ("list",),
        ("list", "--sources"),
        ("sessions",),
        ("search", "plain"),
        ("search", "x", "--wing", "w\x1b[31m"),
        ("forget", "--wing", "w\x1b[31m"),
        ("get", "n\x1b[31m"),
        ("mine", "/no/such\x1b[31m"),
        ("sync", str(own_home / "projects" / "p\x1b[31mq")),
        ("config", "set", "embedder_model\x1b[31m", "x"),
        ("no\x1b[31msuch",),
        ("--nosuch\x1b[31m",),
    ):
        outcomes.append(run(*command))
    for outcome in outcomes:
        acting = {char for char in outcome.out + outcome.err if char < " " and char != "\n"}
        assert acting == set(), (outcome.out, outcome.err)
    assert "\\x1b[31m" in "".join(outcome.out for outcome in outcomes)
    session = json.loads(run("sessions", "--json").out)["sessions"][0]["session"]
    assert session == "s\x1b[31m1"


def test_a_setting_is_printed_as_it_is(run: Run, own_home: Path) -> None:
    assert run("config", "set", "llm_model", "a\x1b[31mb").code == 0
    assert run("config", "get", "llm_model").out == "a\x1b[31mb\n"
    assert json.loads(run("config", "get", "llm_model", "--json").out)["value"] == "a\x1b[31mb"
    done = shell("$castle config get llm_model")
    assert done.stdout == "a\x1b[31mb\n"
    assert "\x1b" not in run("config", "show").out


def test_json_of_anything_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a\x1b": ["\x9b\u202e", "\ud800", "😀", 1, None]}
    say_json(value)
    assert json.loads(capsys.readouterr().out) == value


# Signals


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [castle_binary(), *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment(), text=True, stdin=pipe, stdout=pipe, stderr=pipe
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def when(process: subprocess.Popen[str], words: str) -> str:
    """Read what a process says on stderr until the words come."""
    assert process.stderr is not None
    said = ""
    while words not in said:
        char = process.stderr.read(1)
        assert char, said
        said += char
    return said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_at_the_prompt_is_one_line(project: Path, number: signal.Signals, code: int) -> None:
    with started("init", str(project)) as process:
        asked = when(process, "+name to add:")
        process.send_signal(number)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == code
    assert len((asked + rest).splitlines()) == 1
    assert rest.strip() == "castle: interrupted; run the same command again"
    assert not (project / "castle.yaml").exists()


def test_at_a_terminal_the_line_stands_below_the_prompt(project: Path) -> None:
    ours, theirs = pty.openpty()
    command = [castle_binary(), "init", str(project)]
    with subprocess.Popen(command, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        while b"+name to add:" not in said:
            said += os.read(ours, 1000)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        said += os.read(ours, 1000)
    os.close(ours)
    assert said.splitlines()[-1] == b"castle: interrupted; run the same command again"


def test_termination_in_the_middle_of_a_mine_loses_nothing(tmp_path: Path) -> None:
    root = tmp_path / "many"
    write(root, {f"{n}.md": "\n\n".join(f"page {n} {k} " * 40 for k in range(9)) for n in range(400)})
    palace = str(tmp_path / "palace")
    with started("--palace", palace, "mine", str(root)) as process:
        while not (tmp_path / "palace" / "castle.db-wal").exists():
            time.sleep(0.01)
            assert process.poll() is None
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 143, (out, err)
    assert "Traceback" not in err
    assert "interrupted" in err.splitlines()[-1]
    with Castle(palace) as castle:
        assert not castle.mine_project(root).incomplete
        assert castle.list_sources().total == 400
        assert {finding.status for finding in castle.verify()} == {"ok"}


def test_an_interrupt_in_a_destructor_is_heard() -> None:
    program = """
import signal, time, weakref
import castle.cli
class Thing: pass
def command(arguments):
    thing = Thing()
    told = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
    del thing
    time.sleep(30)
    return 0
castle.cli._command = command
castle.cli.main(["status"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr.splitlines() == ["castle: interrupted; run the same command again"]


def test_an_interrupt_while_a_connection_closes_is_one_line(project: Path, tmp_path: Path) -> None:
    code = """if True:
        import sys
        from sqlalchemy.engine.default import DefaultDialect
        from castle.cli import main
        def closing(*_):
            raise KeyboardInterrupt
        DefaultDialect.do_close = closing
        main(sys.argv[1:])
    """
    done = subprocess.run(
        [sys.executable, "-c", code, "--palace", str(tmp_path / "palace"), "mine", str(project)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "castle: interrupted; run the same command again"
    assert "Traceback" not in done.stderr
