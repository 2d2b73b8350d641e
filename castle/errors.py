"""Every error that Castle raises on purpose.

CastleError
├── UsageError                     the call is wrong: mend the arguments (exit code 2)
│   └── ConfigError                a configuration file or value is wrong
├── PalaceError                    the palace cannot do it
│   ├── PalaceNotFoundError        there is no palace at that path
│   ├── PalaceVersionError         the palace was written by a newer Castle
│   └── PalaceBusyError            another process kept the ledger for longer than the time allowed
├── NotFoundError                  an id, source or wing that the palace does not hold
├── RefusedError                   it would lose or change something; the message says how to insist
└── ModelError                     an embedder cannot be had or does not fit
    └── EmbedderIdentityMismatchError

A message is one line: what happened, where, and the command that helps.
"""

from __future__ import annotations


class CastleError(Exception):
    """The root of every error raised on purpose; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(CastleError):
    """The arguments are wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration file or value cannot be used."""


class PalaceError(CastleError):
    """The palace cannot do what was asked."""


class PalaceNotFoundError(PalaceError):
    """There is no palace at the path."""


class PalaceVersionError(PalaceError):
    """The palace was written by a newer version of Castle."""


class PalaceBusyError(PalaceError):
    """Another process held the ledger for longer than the time allowed."""


class NotFoundError(CastleError):
    """The palace holds no such drawer, source or wing."""


class RefusedError(CastleError):
    """Castle declined, because the step would lose or change something."""


class ModelError(CastleError):
    """A model cannot be loaded or asked, or returned something unusable."""


class UnreadableError(ModelError):
    """A model was not made for a text, such as one in a script that it does not know; nothing is broken."""


class EmbedderIdentityMismatchError(ModelError):
    """The palace's vectors were made by another embedder than the one asked for."""
