"""`lossscope check`: is an objective what it claims to be? One file per property."""
