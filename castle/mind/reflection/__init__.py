"""Reflection: why something went as it did, and what is to be believed or done otherwise."""
