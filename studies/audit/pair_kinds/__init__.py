"""Data sets with known matches, for the studies of the audit: one file a kind."""
