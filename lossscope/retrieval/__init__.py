"""Ranks and retrieval metrics of a similarity matrix, of a source, and of single queries."""
