from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from castle.records import Scope
from castle.store.lexicon import Lexicon
from castle.store.locks import FileLock
from castle.store.projection import Watermark
from castle.store.vectors import Vectors
from tests.store.rows import IDENTITY, make_row, make_vectors

BATCH = 20

WRITER = """
import sys
from pathlib import Path
from castle.store.lexicon import Lexicon
from castle.store.locks import FileLock
from castle.store.projection import Watermark
from castle.store.vectors import Vectors
from tests.store.rows import IDENTITY, make_row, make_vectors

root, batches, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
lexicon, vectors = Lexicon(root / "lexicon"), Vectors(root / "drawers.lance", IDENTITY)
with FileLock(root / "lock") as held:
    assert held
    print("ready", flush=True)
    first = (lexicon.watermark() or Watermark("e", 0)).seq // size
    for batch in range(min(first, (vectors.watermark() or Watermark("e", 0)).seq // size), batches):
        numbers = list(range(batch * size, (batch + 1) * size))
        rows = [make_row(number) for number in numbers]
        mark = Watermark("e", (batch + 1) * size)
        lexicon.apply(rows, mark)
        vectors.apply(rows, make_vectors(numbers), mark)
"""


def start(root: Path, batches: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(root), str(batches), str(BATCH)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def open_both(root: Path) -> tuple[Lexicon, Vectors]:
    return Lexicon(root / "lexicon"), Vectors(root / "drawers.lance", IDENTITY)


def first_batch(root: Path) -> None:
    rows = [make_row(number) for number in range(BATCH)]
    lexicon, vectors = open_both(root)
    lexicon.apply(rows, Watermark("e", BATCH))
    vectors.apply(rows, make_vectors(list(range(BATCH))), Watermark("e", BATCH))


def seq(projection: Lexicon | Vectors) -> int:
    mark = projection.watermark()
    assert mark is not None
    assert mark.epoch == "e"
    return mark.seq


@pytest.mark.slow
def test_one_process_writes_while_another_searches(tmp_path: Path) -> None:
    first_batch(tmp_path)
    lexicon, vectors = open_both(tmp_path)
    writer = start(tmp_path, 60)
    assert not FileLock(tmp_path / "lock").try_acquire()
    query = make_vectors([3])[0]
    seen = [(BATCH, BATCH)]
    rounds = 0
    while writer.poll() is None:
        marks = (seq(lexicon), seq(vectors))
        assert marks[0] >= seen[-1][0]
        assert marks[1] >= seen[-1][1]
        seen.append(marks)
        assert lexicon.count() >= marks[0]
        assert vectors.count() >= marks[1]
        assert len(lexicon.search("harbour", Scope(), 10)) == 10
        assert vectors.search(query, Scope(), 10)[0].id == make_row(3).id
        rounds += 1
    assert writer.communicate() == ("", "")
    assert writer.returncode == 0
    assert rounds > 3
    assert len(set(seen)) > 2
    assert (seq(lexicon), seq(vectors)) == (60 * BATCH, 60 * BATCH)
    assert (lexicon.count(), vectors.count()) == (60 * BATCH, 60 * BATCH)
    with FileLock(tmp_path / "lock") as held:
        assert held


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 4))])
def test_a_killed_writer_leaves_whole_batches(tmp_path: Path, seed: int) -> None:
    first_batch(tmp_path)
    chance = random.Random(seed)
    for _ in range(2):
        writer = start(tmp_path, 10_000)
        time.sleep(0.2 + chance.random() * 0.4)
        writer.kill()
        assert writer.communicate()[1] == ""
        lexicon, vectors = open_both(tmp_path)
        for projection in (lexicon, vectors):
            reached = seq(projection)
            assert reached % BATCH == 0
            assert projection.count() == reached
        everything = {make_row(number).id for number in range(seq(lexicon) + BATCH)}
        assert lexicon.ids_present(everything) == {make_row(number).id for number in range(seq(lexicon))}
        assert lexicon.damaged_files() == []
        lexicon.close()
        vectors.close()
    # The next writer takes over where the projections say.
    lexicon, vectors = open_both(tmp_path)
    wanted = max(seq(lexicon), seq(vectors)) // BATCH + 1
    writer = start(tmp_path, wanted)
    assert writer.communicate() == ("", "")
    assert (lexicon.count(), vectors.count()) == (wanted * BATCH, wanted * BATCH)
