"""The plugins for hosts, and what keeps them up to date with the package."""
