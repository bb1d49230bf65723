"""Kinds of data that did not set any threshold of the doctor, one file a kind."""
