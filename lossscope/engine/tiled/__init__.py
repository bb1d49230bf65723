"""Batches larger than memory: one pass over tiles of S that are never held together."""
