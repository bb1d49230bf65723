"""Which system is better: names of systems, paired tests, bootstrap, power, rank association. No torch here."""
