"""The command line with all its commands."""

from __future__ import annotations

from castle.cli import (
    backup,
    check,
    compress,
    config,
    diary,
    doctor,
    entities,
    environment,
    evaluating,
    filing,
    finding,
    hook,
    instructions,
    keeping,
    kg,
    mcp,
    mind,
    notes,
    novelty,
    purge,
    receipts,
    reindex,
    searching,
    serve,
    share,
    split,
    sue,
    tunnels,
    understand,
    wakeup,
    wing,
)
from castle.cli.root import new_app

app = new_app()

filing.add_to(app)
notes.add_to(app)
searching.add_to(app)
finding.add_to(app)
receipts.add_to(app)
wakeup.add_to(app)
novelty.add_to(app)
evaluating.add_to(app)
understand.add_to(app)
keeping.add_to(app)
purge.add_to(app)
reindex.add_to(app)
backup.add_to(app)
doctor.add_to(app)
check.add_to(app)
environment.add_to(app)
compress.add_to(app)
split.add_to(app)
mcp.add_to(app)
serve.add_to(app)
share.add_to(app)
instructions.add_to(app)
app.add_typer(diary.app, name="diary")
app.add_typer(tunnels.app, name="tunnels")
app.add_typer(kg.app, name="kg")
app.add_typer(entities.app, name="entities")
app.add_typer(mind.app, name="memory")
app.add_typer(sue.app, name="sue")
app.add_typer(wing.app, name="wing")
app.add_typer(hook.app, name="hook")
app.add_typer(config.app, name="config")
