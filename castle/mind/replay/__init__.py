"""Replay: hypotheses that join what is far apart, their constraints, and the pool they wait in."""
