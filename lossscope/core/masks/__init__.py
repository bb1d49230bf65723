"""Which negatives are left out of a loss, as they are probably relevant: one file a rule."""
