"""Rows of text data: a query, its positives and its mined negatives, read from files of any size in blocks."""
