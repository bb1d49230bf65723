"""Ranks and retrieval metrics, of a matrix, of a source, and of single queries."""
