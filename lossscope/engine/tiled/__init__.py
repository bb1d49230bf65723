"""Batches larger than memory: one pass over tiles of S, which is never in memory as a whole."""
