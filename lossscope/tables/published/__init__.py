"""The published values of the papers as CSV, and which of them are in doubt."""
