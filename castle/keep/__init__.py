"""What the palace is like, and its content outside of it: exports and imports."""
