from __future__ import annotations

import signal
import stat
import subprocess
import sys
from pathlib import Path

from castle.store.locks import FileLock

HOLD = """
import sys, time
from pathlib import Path
from castle.store.locks import FileLock
lock = FileLock(Path(sys.argv[1]))
print(lock.try_acquire(), flush=True)
time.sleep(60)
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_acquire()
    assert not second.try_acquire()
    assert second.reason == "held by another process"
    assert not first.try_acquire()
    first.release()
    assert second.try_acquire()
    assert second.reason == ""
    second.release()
    second.release()


def test_as_a_context(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock") as held:
        assert held
        with FileLock(tmp_path / "lock") as again:
            assert not again
    with FileLock(tmp_path / "lock") as held:
        assert held


def test_the_file_is_private(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock"):
        assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600


def test_a_killed_holder_leaves_nothing_locked(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = holder(path)
    lock = FileLock(path)
    assert not lock.try_acquire()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert lock.try_acquire()
    lock.release()


def test_a_program_started_meanwhile_does_not_keep_it(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.try_acquire()
    command = [sys.executable, "-c", "print(flush=True); input()"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False)
    assert child.stdout is not None
    child.stdout.readline()
    lock.release()
    with FileLock(tmp_path / "lock") as held:
        assert held
    child.communicate(b"\n")


def test_a_deleted_file_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second = FileLock(path), FileLock(path)
    assert first.try_acquire()
    path.unlink()
    assert second.try_acquire()
    first.release()
    assert not FileLock(path).try_acquire()
    second.release()


def test_what_cannot_be_opened_is_a_reason(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "missing" / "lock")
    assert not lock.try_acquire()
    assert "No such file" in lock.reason
    (tmp_path / "link").symlink_to("elsewhere")
    assert not FileLock(tmp_path / "link").try_acquire()
    assert not (tmp_path / "elsewhere").exists()
