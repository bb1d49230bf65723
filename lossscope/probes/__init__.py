"""A probe reports statistics of a batch. One file per probe."""
