"""Castle: the one object that the command line, the MCP server, the hooks and Python programs call."""

from __future__ import annotations

from castle.service.backups import Copying
from castle.service.doctor import Doctoring
from castle.service.environment import Checking
from castle.service.evaluating import Evaluating
from castle.service.ingesting import Ingesting
from castle.service.keeping import Keeping
from castle.service.knowing import Knowing
from castle.service.notes import Notes
from castle.service.picturing import Picturing
from castle.service.purging import Purging
from castle.service.reindexing import Reindexing
from castle.service.reviewing import Reviewing
from castle.service.serving import Serving
from castle.service.wakeup import Waking


class Castle(
    Ingesting,
    Notes,
    Serving,
    Waking,
    Keeping,
    Knowing,
    Doctoring,
    Copying,
    Reindexing,
    Purging,
    Evaluating,
    Picturing,
    Checking,
    Reviewing,
):
    """A palace and everything that can be done with it.

    ``palace`` is its directory; left out, the settings decide (the environment variable CASTLE_PALACE_PATH,
    the user's ``castle.yaml``, ``~/.castle/palace``). ``embedder`` names the embedder a new palace is made
    with. Nothing is opened or created before the first call that needs it.
    """
