"""Sources of S in blocks: a matrix, strips, shards of vectors."""
