"""Consolidation: episodes are scored, put away when they count little, and looked through for patterns."""
