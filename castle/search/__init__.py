"""Finding drawers: recall, fusion, and what later stages do with the candidates."""
