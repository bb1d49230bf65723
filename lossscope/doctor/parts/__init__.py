"""What there is to examine of a source: one file a part, each computed once and when it is first needed."""
