"""What do the numbers say? One file per question: sentences that are computed from the results."""
