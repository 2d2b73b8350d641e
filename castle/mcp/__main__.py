"""``python -m castle.mcp`` is ``castle-mcp``."""

from castle.mcp import main

main()
