"""Text: chunks, words, secrets, and what is served of a text that holds secrets."""
