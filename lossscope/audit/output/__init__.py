"""What an audit writes: the page on which a person labels pairs."""
