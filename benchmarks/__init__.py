"""Measurements of the installed product; each module is a command."""
