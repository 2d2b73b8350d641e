"""One module for each question set: ``read(path)`` returns its ``Collection``."""
