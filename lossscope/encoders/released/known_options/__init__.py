"""The options in each family's files and what becomes of them here: one table a family."""
