"""Write an audit: its folder, its tables, and the page on which a person labels pairs."""
