"""What an audit knows of both sides, each part computed once."""
