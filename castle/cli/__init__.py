"""The ``castle`` command line."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

INTERRUPTED = 130
TERMINATED = 143

_GLOBAL_WITH_VALUE = ("--palace",)
_GLOBAL_FLAGS = ("--debug",)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and leave the process with its exit code."""
    # Read when numpy is loaded: for products as small as ours, waking threads takes longer than computing.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _open_streams()
    _tolerant_streams()
    arguments = _hoisted(list(sys.argv[1:] if argv is None else argv))
    with _terminable() as told:
        try:
            code = _run(arguments, "--debug" in arguments)
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader of our output has gone; keep the interpreter from complaining at shutdown.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
    sys.exit(TERMINATED if told and code == INTERRUPTED else code)


@contextmanager
def _terminable() -> Iterator[list[int]]:
    """Let SIGTERM stop a command as Ctrl-C does, at a place where nothing is lost; yield what has come."""
    told: list[int] = []

    def stop(number: int, _frame: object) -> None:
        told.append(number)
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread, which alone hears signals
        yield told
        return
    try:
        yield told
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(arguments: list[str], debug: bool) -> int:
    import logging

    from castle.errors import CastleError

    # What stages have to say is in their answer; a log of it would say it twice. SQLAlchemy logs an interrupt
    # that comes while it closes a connection, with a traceback, and lets it go on to here.
    for library in ("castle", "sqlalchemy"):
        logging.getLogger(library).addHandler(logging.NullHandler())
    before, sys.unraisablehook = sys.unraisablehook, _unraisable
    try:
        return _command(arguments)
    except CastleError as error:
        if debug:
            raise
        _complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # the terminal has written ^C
        _complain("interrupted; run the same command again")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # the edge of the process: a fault of ours becomes one line
        if debug:
            raise
        _complain(f"{type(error).__name__}: {error}; run it again with --debug and report what that prints")
        return 1
    finally:
        sys.unraisablehook = before


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Let an interrupt come again that came in a destructor, where Python would tell of it and drop it."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt, ())
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt() -> None:
    time.sleep(0.01)  # until the destructor has been left
    _thread.interrupt_main()


def _command(arguments: list[str]) -> int:
    from castle.cli.direct import answered

    code = answered(arguments)
    if code is not None:
        return code
    import typer.exceptions
    import typer.main

    from castle.cli.app import app
    from castle.errors import UsageError

    try:
        if "--palace=" in arguments or ("--palace", "") in zip(arguments, arguments[1:], strict=False):
            raise UsageError("--palace is empty: name the directory of a palace")
        command = typer.main.get_command(app)
        # Not the command's own main: that turns interrupts and a closed pipe into other exit codes.
        with command.make_context("castle", arguments) as context:
            result = command.invoke(context)
        return result if isinstance(result, int) else 0
    except typer.exceptions.Exit as leaving:
        return leaving.exit_code
    except typer.exceptions.TyperException as error:
        return _usage(error)


def _usage(error: Exception) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "castle"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{message}\n")
    else:
        _complain(f"{message.rstrip('.')}: see `{command} --help`")
    return int(getattr(error, "exit_code", 2))


def _complain(message: str) -> None:
    from castle.cli.output import note

    note("castle: " + " ".join(message.splitlines()))


def _hoisted(arguments: list[str]) -> list[str]:
    """Move the options that hold for every command to the front, so that they may stand anywhere."""
    front: list[str] = []
    rest: list[str] = []
    pending = iter(arguments)
    for argument in pending:
        if argument == "--":
            rest += [argument, *pending]
        elif argument in _GLOBAL_WITH_VALUE:
            front += [argument, *([value] if (value := next(pending, None)) is not None else [])]
        elif argument in _GLOBAL_FLAGS or argument.startswith(tuple(f"{o}=" for o in _GLOBAL_WITH_VALUE)):
            front.append(argument)
        else:
            rest.append(argument)
    return front + rest


def _open_streams() -> None:
    """Give a process that was started with closed streams something harmless in their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _tolerant_streams() -> None:
    """Never fail on a character the terminal cannot show, whatever the locale."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
