"""Embedders behind one small protocol, with a registry by name; see ``castle.models.registry``."""
