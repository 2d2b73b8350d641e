"""What the command line imports before it does anything."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "httpx",
    "lancedb",
    "mcp",
    "networkx",
    "numpy",
    "onnxruntime",
    "pyarrow",
    "pydantic",
    "rich",
    "sqlalchemy",
    "tantivy",
    "tokenizers",
    "yaml",
}
MOST_OWN = 70
"""Modules of Castle that its help may need: about one for each group of commands, and what they share."""


def test_help_imports_no_more_than_it_needs() -> None:
    code = (
        "import sys\nfrom castle.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "search" in done.stdout
    loaded = done.stderr.split()
    assert not HEAVY & set(loaded)
    own = [name for name in loaded if name.partition(".")[0] == "castle"]
    assert len(own) <= MOST_OWN, own
