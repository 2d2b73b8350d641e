"""The ledger and its projections."""
