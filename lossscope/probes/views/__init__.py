"""What a probe reads: the rows of S with their mask, weights and embeddings."""
