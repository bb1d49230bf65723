"""From sources to findings: what a source has, the checks in their order, causes before their symptoms, JSON."""
