"""``python -m castle.hooks`` is ``castle-hook``."""

from castle.hooks import main

main()
