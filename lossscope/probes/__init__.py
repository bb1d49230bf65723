"""One file per probe: which statistics of a batch it reads and reports."""
