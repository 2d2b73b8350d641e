"""Retrieval measured on question sets with known answers: ``python -m benchmarks.retrieval --help``."""
