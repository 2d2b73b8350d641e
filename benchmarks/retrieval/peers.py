"""Other ways to search the same data."""
PEERS = ()
