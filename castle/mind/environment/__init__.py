"""The environment of a project: collected from its files and tools, and checked against conditions."""
