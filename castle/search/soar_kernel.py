"""The process that owns a Soar kernel: one thread, one agent, one query after another.

It is run as a script, by path, with two arguments: the module of the bindings and the rules file. It speaks
JSON lines. First it says ``{}`` or ``{"error": reason}``. Then it answers each query

    {"context": [[attribute, value], ...], "memories": [[[attribute, value], ...], ...]}

with ``{"tags": [[tag, ...], ...]}``, one list for each memory in the order given. A value is text, an integer
or a float.

It is a process and not a thread because the bindings hold Python's interpreter lock while Soar runs: rules
that take a minute would stop every thread of a server, and only a process can be ended. It imports nothing of
Castle, so that it starts in the time that Python and the bindings take.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, TextIO

DECISIONS = 50
"""Decision cycles a query may take."""

# The bindings do not show what rules add below the input link. This carries each tag over to the output link,
# where the memory's place in the query is the attribute: a small set, because Soar never forgets the
# attributes that it showed to its client.
_REPORT = """sp {castle*report*boost-tag
    (state <s> ^superstate nil ^io <io>)
    (<io> ^input-link <input> ^output-link <output>)
    (<input> ^memory <m>)
    (<m> ^place <place> ^boost-tag <tag>)
-->
    (<output> ^<place> <tag>)
}"""


class KernelError(Exception):
    """Soar or its rules cannot be used; the message is one line."""


class RuleKernel:
    """A Soar kernel with the productions of one file."""

    def __init__(self, sml: Any, rules: Path) -> None:
        # Port 0 keeps the kernel from listening; the default opens 12121 to every network.
        self._kernel = sml.Kernel.CreateKernelInCurrentThread(True, 0)
        if self._kernel.HadError():
            raise KernelError(_line(self._kernel.GetLastErrorDescription()))
        self._agent = self._kernel.CreateAgent("castle")
        if self._kernel.HadError():
            raise KernelError(_line(self._kernel.GetLastErrorDescription()))
        # Without it a query that no rule answers opens a substate in every further decision.
        self._agent.ExecuteCommandLine("soar wait-snc on")
        self._load(rules)

    def _load(self, rules: Path) -> None:
        before = Path.cwd()
        # A directory with braces in its name breaks Soar's command; with a bare name rules can source others.
        os.chdir(rules.parent)
        try:
            if not self._agent.LoadProductions(rules.name, False):
                raise KernelError(_line(self._agent.GetLastErrorDescription()))
        finally:
            os.chdir(before)
        self._agent.ExecuteCommandLine(_REPORT)
        if not self._agent.GetLastCommandLineResult():
            raise KernelError("the rules leave no way to report tags")

    def tags(self, context: list[list[Any]], memories: list[list[list[Any]]]) -> list[list[str]]:
        """Put one query into working memory, run, and read each memory's tags; nothing of it remains."""
        link = self._agent.GetInputLink()
        roots = [_put(link, "context", context)]
        for place, memory in enumerate(memories):
            roots.append(_put(link, "memory", [*memory, ["place", f"#{place}"]]))
        self._agent.Commit()
        self._agent.RunSelf(DECISIONS)
        found = self._read()
        for root in roots:
            root.DestroyWME()
        self._agent.Commit()
        # It also drops what rules with operators keep, and mends the link after a (halt).
        self._agent.InitSoar()
        return [sorted(found.get(f"#{place}", ())) for place in range(len(memories))]

    def _read(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        output = self._agent.GetOutputLink()
        for index in range(output.GetNumberChildren() if output else 0):
            element = output.GetChild(index)
            found.setdefault(element.GetAttribute(), set()).add(element.GetValueAsString())
        return found

    def close(self) -> None:
        """Shut the kernel down."""
        self._kernel.Shutdown()


def _put(link: Any, attribute: str, fields: list[list[Any]]) -> Any:
    node = link.CreateIdWME(attribute)
    for name, value in fields:
        if isinstance(value, str):
            node.CreateStringWME(name, _symbol(value))
        elif isinstance(value, int):
            node.CreateIntWME(name, value)
        else:
            node.CreateFloatWME(name, value)
    return node


def _symbol(text: str) -> str:
    """Write what a C string cannot hold, NUL and lone surrogates, as a backslash and its number."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def _line(text: str) -> str:
    """Make one line of Soar's message, without its progress stars and its count of productions."""
    return " ".join(text.partition("\nTotal:")[0].lstrip("* \n").split())[:300]


def serve(requests: TextIO, answers: TextIO, module: str, rules: Path) -> None:
    """Answer requests until their stream ends."""

    def say(answer: object) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        kernel = RuleKernel(importlib.import_module(module), rules)
    except KernelError as error:
        say({"error": str(error)})
        return
    except (ImportError, AttributeError, OSError) as error:
        say({"error": f"{type(error).__name__}: {error}"})
        return
    say({})
    for line in requests:
        say({"tags": kernel.tags(**json.loads(line))})
    kernel.close()


def main() -> None:
    """Take the protocol's streams away from the rules, which may run commands, and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    serve(requests, answers, sys.argv[1], Path(sys.argv[2]))


if __name__ == "__main__":
    main()
