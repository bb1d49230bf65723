"""What a probe may look at: rows of S with their mask, weights and embeddings."""
