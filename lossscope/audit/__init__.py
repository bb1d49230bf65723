"""Which negatives are really positives? One file a signal; `steps` puts them together."""
