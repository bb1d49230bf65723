"""A probe reads a view: rows of S with their mask, weights and embeddings."""
