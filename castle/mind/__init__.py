"""The mind: what an agent believes, can do and prefers, over the same palace."""
