"""One file per kind of source: dumps, checkpoints, folders that yield embeddings or similarities."""
