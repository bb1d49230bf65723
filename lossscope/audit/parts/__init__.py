"""The parts of what an audit knows of both sides, each computed once."""
