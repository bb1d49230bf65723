"""Counting rules: how counts follow from sums over a row; one file per rule (softmax, hinge, hardest, smooth rank)."""
