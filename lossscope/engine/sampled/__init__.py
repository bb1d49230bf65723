"""Some queries, drawn at random, against all candidates: exact for each query, an interval for those not drawn."""
