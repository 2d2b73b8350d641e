"""Falsifiable conditions: their rules, the values they compare, and what becomes of who has one."""
