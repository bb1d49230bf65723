"""Kinds of data that no threshold of the doctor was set on, one file a kind."""
