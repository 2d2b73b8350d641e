"""How much information each drawer of a verbatim memory adds, and what may be left out."""
