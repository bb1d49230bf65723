"""From signals to probabilities, and from these to rates with intervals."""
