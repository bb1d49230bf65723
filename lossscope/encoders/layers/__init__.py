"""What encoders are built of: towers, poolings, transformers, pair scores."""
