"""The processes to which the faults happen: ``python -m benchmarks.fault_work VERB PALACE ...``.

Every line that is printed acknowledges a write: what it names must be there for ever after.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.fault_palace import NoteClock, fact, note
from castle import Castle
from castle.errors import CastleError


def write(palace: Path, first: int, last: int, wing: str, *, with_facts: bool) -> None:
    """Add notes, and where it is asked for, every third time a fact."""
    clock = NoteClock()
    with Castle(palace, embedder="fake", clock=clock) as castle:
        for number in range(first, last):
            clock.number = number
            added = castle.add(note(number), wing=wing, room=f"room{number % 3}")
            _acknowledge("note", number, added.id)
            if with_facts and number % 3 == 0:
                castle.kg.add(*fact(number))
                _acknowledge("fact", number, " ".join(fact(number)))


def facts(palace: Path, first: int, last: int) -> None:
    """Add facts."""
    with Castle(palace, embedder="fake") as castle:
        for number in range(first, last):
            castle.kg.add(*fact(number))
            _acknowledge("fact", number, " ".join(fact(number)))


def search(palace: Path, queries: list[str]) -> None:
    """Search without end; each answer is a line: what was found, and what was not in force."""
    with Castle(palace) as castle:
        while True:
            for query in queries:
                result = castle.search(query, mode="fast")
                print(json.dumps({"hits": len(result.hits), "degraded": list(result.degraded)}), flush=True)


def fill_up(palace: Path, most: int, first: int) -> None:
    """Add notes until there is no room, or ``most`` of them; say why it ended."""
    clock = NoteClock()
    with Castle(palace, embedder="fake", clock=clock) as castle:
        for number in range(first, most):
            clock.number = number
            text = f"{note(number)}{' '.join(f'{word}{number}' for word in note(number).split() * 30)}\n"
            try:
                added = castle.add(text, wing="notes", room=f"room{number % 3}")
            except CastleError as error:
                print(json.dumps({"kind": "refused", "number": number, "what": str(error)}), flush=True)
                return
            _acknowledge("note", number, added.id)


def limited(palace: Path, most_bytes: int, most: int, first: int) -> None:
    """Do what ``fill_up`` does where no file may grow beyond a size: a disk that is full, without one."""
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.dont_write_bytecode = True  # that of a module would be cut off, and stay
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    fill_up(palace, most, first)


def _acknowledge(kind: str, number: int, what: str) -> None:
    print(json.dumps({"kind": kind, "number": number, "what": what}), flush=True)


def main() -> None:
    """Do the work that the command line names."""
    verb, place, *rest = sys.argv[1:]
    palace = Path(place)
    if verb in ("write", "notes"):
        write(palace, int(rest[0]), int(rest[1]), rest[2], with_facts=verb == "write")
    elif verb == "facts":
        facts(palace, int(rest[0]), int(rest[1]))
    elif verb == "search":
        search(palace, rest)
    elif verb == "fill-up":
        fill_up(palace, int(rest[0]), int(rest[1]))
    elif verb == "limited":
        limited(palace, int(rest[0]), int(rest[1]), int(rest[2]))
    else:
        raise SystemExit(f"no work {verb}")


if __name__ == "__main__":
    try:
        main()
    except CastleError as error:  # the edge of the process: said in one line, as the command line does
        print(f"castle: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
