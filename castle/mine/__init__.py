"""Miners: what turns files and conversations into drawers."""

from __future__ import annotations
