"""Data sets of which it is known what matches: one file a kind, as the studies of the audit read them."""
