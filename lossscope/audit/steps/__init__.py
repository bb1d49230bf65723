"""From sources and data to a result, step by step."""
