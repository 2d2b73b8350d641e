"""``python -m castle`` is the command line."""

from castle.cli import main

if __name__ == "__main__":
    main()
