"""How counts follow from sums over a row: one file per rule (softmax, hinge, hardest negative, smooth rank)."""
