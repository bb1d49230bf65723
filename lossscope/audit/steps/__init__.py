"""Lead from sources and data to a result, step by step."""
