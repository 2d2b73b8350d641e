"""Where the numbers that Castle ships come from."""
