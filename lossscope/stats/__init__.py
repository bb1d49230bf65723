"""Which system is better: names of systems, paired tests, bootstrap, rank association. No torch here."""
