"""A random sample of queries against all candidates: exact for each query, with an interval for all queries."""
